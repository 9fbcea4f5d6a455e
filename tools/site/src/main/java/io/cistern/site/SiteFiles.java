package io.cistern.site;

import java.nio.file.Path;

/// Maps a file of the repository to its file of the site.
final class SiteFiles {
    private SiteFiles() {}

    /// Returns the file of the site, from its root. Pages become HTML; so do sources and folders, which a
    /// browser would not show. Archives and pictures stay as they are.
    static Path of(Path file, boolean isFolder) {
        String name = file.toString();
        if (isFolder) {
            return Path.of(name, "index.html");
        }
        if (name.endsWith(".md")) {
            String page = name.substring(0, name.length() - ".md".length());
            return Path.of(
                    page.endsWith("README")
                            ? page.substring(0, page.length() - "README".length()) + "index.html"
                            : page + ".html");
        }
        return isCopied(name) ? file : Path.of(name + ".html");
    }

    static boolean isCopied(String name) {
        return name.endsWith(".gz") || name.endsWith(".svg") || name.endsWith(".png");
    }

    /// Returns a link from one file of the site to another.
    static String link(Path from, Path to, String anchor) {
        Path folder = from.getParent();
        Path way = folder == null ? to : folder.relativize(to);
        return way.toString().replace('\\', '/') + (anchor.isEmpty() ? "" : "#" + anchor);
    }
}
