package io.cistern.site;

import java.nio.file.Path;

/// Where a link of a page leads.
///
/// @param text as the page says it
/// @param file from the root of the repository; empty outside it
/// @param anchor empty if the link names none
record Target(String text, Path file, String anchor) {
    private static final Path NOWHERE = Path.of("");

    /// @param from the page that has the link, from the root of the repository
    static Target of(Path from, String text) {
        int hash = text.indexOf('#');
        String path = hash < 0 ? text : text.substring(0, hash);
        String anchor = hash < 0 ? "" : text.substring(hash + 1);
        if (path.contains("://") || path.startsWith("mailto:")) {
            return new Target(text, NOWHERE, anchor);
        }
        Path file = path.isEmpty() ? from : from.resolveSibling(path).normalize();
        return new Target(text, file, anchor);
    }

    boolean isOutside() {
        return file.equals(NOWHERE) && text.contains(":");
    }
}
