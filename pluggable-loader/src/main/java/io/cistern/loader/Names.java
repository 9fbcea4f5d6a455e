package io.cistern.loader;

/// Checks names of allocators and segment sources: lower-case letters, digits, `-` and `_`, with a letter or
/// digit first. It compares characters itself, since the program checks names at startup and would have to load
/// the JDK's patterns.
final class Names {
    private Names() {}

    static boolean isLegal(String name) {
        for (int i = 0; i < name.length(); i++) {
            if (!isLetterOrDigit(name.charAt(i)) && (i == 0 || "-_".indexOf(name.charAt(i)) < 0)) {
                return false;
            }
        }
        return !name.isEmpty();
    }

    private static boolean isLetterOrDigit(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    }
}
