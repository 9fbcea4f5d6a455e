package io.cistern.site;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// Shows files of the repository that pages link to and that are not pages: sources become pages of code, and
/// folders become lists.
final class SourceFiles {
    private final Path root;

    SourceFiles(Path root) {
        this.root = root;
    }

    /// Returns the text of the page for a file.
    String text(Path file) throws IOException {
        return "<h1>%s</h1>\n<p><code>%s</code></p>\n<pre><code>%s</code></pre>\n"
                .formatted(
                        Frame.escaped(String.valueOf(file.getFileName())),
                        Frame.escaped(file.toString()),
                        Frame.escaped(Files.readString(root.resolve(file))));
    }

    /// Returns all files in a folder and below.
    List<Path> in(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(root.resolve(folder))) {
            return files.filter(Files::isRegularFile)
                    .map(root::relativize)
                    .filter(file -> !file.toString().contains("/target/"))
                    .sorted()
                    .toList();
        }
    }

    /// Returns the text of the page for a folder.
    String list(Path folder) throws IOException {
        StringBuilder html = new StringBuilder("<h1>%s</h1>\n<ul>\n".formatted(Frame.escaped(folder.toString())));
        Path from = SiteFiles.of(folder, true);
        for (Path file : in(folder)) {
            html.append("<li><a href=\"%s\">%s</a></li>\n"
                    .formatted(
                            SiteFiles.link(from, SiteFiles.of(file, false), ""),
                            Frame.escaped(folder.relativize(file).toString())));
        }
        return html + "</ul>\n";
    }
}
