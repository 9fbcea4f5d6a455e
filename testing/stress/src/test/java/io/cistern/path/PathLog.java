package io.cistern.path;

import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// The classes and methods that one call of the main thread passes through.
public final class PathLog {
    private static final Thread MAIN = Thread.currentThread();

    private static @Nullable Set<String> methods;

    private PathLog() {}

    static void begin() {
        methods = new TreeSet<>();
    }

    /// Returns the methods entered since the beginning, each as `class method`.
    static Set<String> end() {
        Set<String> entered = methods == null ? Set.of() : methods;
        methods = null;
        return entered;
    }

    /// Called at the start of each method.
    public static void entered(String type, String method) {
        Set<String> into = methods;
        if (into != null && Thread.currentThread().equals(MAIN)) {
            into.add(type + " " + method);
        }
    }
}
