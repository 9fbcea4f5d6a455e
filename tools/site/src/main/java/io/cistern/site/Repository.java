package io.cistern.site;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// The pages of a working tree.
///
/// @param root the folder of the working tree
record Repository(Path root) {
    static final Path FIRST = Path.of("README.md");

    /// The page that lists all others, in groups.
    static final Path LIST = Path.of("docs", "README.md");

    private static final List<String> OUTSIDE_DOCS = List.of(
            "README.md",
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "CHANGELOG.md",
            "examples/plugin-template/README.md",
            "testing/stress/README.md",
            "tools/benchmarks/peers/README.md",
            "tools/cli/src/main/resources/io/cistern/cli/traces/README.md");

    /// Returns the working tree in which this program runs.
    static Repository here() {
        for (Path at = Path.of("").toAbsolutePath(); at != null; at = at.getParent()) {
            if (Files.exists(at.resolve("bin/find-jdk"))) {
                return new Repository(at);
            }
        }
        throw new IllegalStateException("this program is not running in a working tree of Cistern");
    }

    List<Page> pages() throws IOException {
        List<Page> pages = new ArrayList<>();
        for (String file : OUTSIDE_DOCS) {
            pages.add(Page.read(root, Path.of(file)));
        }
        try (Stream<Path> files = Files.walk(root.resolve("docs"))) {
            for (Path file : files.filter(each -> each.toString().endsWith(".md"))
                    .sorted()
                    .toList()) {
                pages.add(Page.read(root, root.relativize(file)));
            }
        }
        return pages;
    }
}
