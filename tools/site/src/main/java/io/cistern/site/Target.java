package io.cistern.site;

import java.nio.file.Path;

/// The target of a link on a page.
///
/// @param text the target as the page writes it
/// @param file the path from the root of the repository; empty if the target is outside it
/// @param anchor the anchor; empty if the link names none
record Target(String text, Path file, String anchor) {
    private static final Path NOWHERE = Path.of("");

    /// @param from the page that contains the link, from the root of the repository
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
