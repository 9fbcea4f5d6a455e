package io.cistern.loader;

/// What allocators and segment sources may be called: lower-case letters, digits, `-` and `_`, a letter or digit first.
/// Compared by hand, since names are looked at while the program starts, which would else wait for the JDK's patterns.
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
