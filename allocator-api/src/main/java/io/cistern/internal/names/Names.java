package io.cistern.internal.names;

/// Checks names of allocators and segment sources: lower-case letters, digits, `-` and `_`, with a letter or
/// digit first. It compares characters itself, since the program checks names at startup and would have to load
/// the JDK's patterns.
public final class Names {
    static final String RULE = "consists of lower-case letters, digits, '-' and '_', and begins with a letter or digit";

    private Names() {}

    /// Returns a name and its origin, for messages; the path alone if the name is that of its file.
    public static String of(String name, String origin) {
        return origin.endsWith("/" + name) ? origin : name + " of " + origin;
    }

    /// Returns the message for an illegal name.
    public static String illegal(String name) {
        return "calls itself '" + name + "'; a name " + RULE;
    }

    /// Returns whether a name follows the rule.
    public static boolean isLegal(String name) {
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
