package org.example.idle;

/// Does nothing.
public final class EmptyMain {
    private EmptyMain() {}

    public static void main(String[] arguments) {}
}
