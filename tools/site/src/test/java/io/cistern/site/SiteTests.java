package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The site of this repository, without the Javadoc.
final class SiteTests {
    private static final Pattern HREF = Pattern.compile("(?:href|src)=\"([^\"]+)\"");
    private static final Pattern ID = Pattern.compile(" id=\"([^\"]+)\"");

    @TempDir
    private static Path site;

    @BeforeAll
    static void makeSite() throws IOException {
        Site.make(AllPages.REPOSITORY, site, false);
    }

    @Test
    void everyLinkOfTheSiteLeadsToAFileOfIt() throws IOException {
        List<Path> files = files();
        assertThat(files).hasSizeGreaterThan(60).allSatisfy(file -> {
            String html = Files.readString(file);
            assertThat(HREF.matcher(html).results().map(link -> link.group(1)))
                    .filteredOn(link -> !link.contains("://") && !link.startsWith("mailto:"))
                    .allSatisfy(link -> assertThat(target(file, link)).as(link).exists());
        });
    }

    @Test
    void headingsHaveTheirAnchorsAndDrawingsTheirText() throws IOException {
        String concepts = Files.readString(site.resolve("docs/concepts.html"));
        assertThat(ID.matcher(concepts).results().map((MatchResult id) -> id.group(1)))
                .contains("allocator-segment-block", "stream-order");
        assertThat(concepts).contains("<text", "your program</text>").doesNotContain("<!--", "concepts.md");
    }

    @Test
    void everyPageHasTheWayToAllGroups() throws IOException {
        assertThat(files())
                .allSatisfy(file -> assertThat(Files.readString(file))
                        .contains("<h2>Begin</h2>", "<h2>Results</h2>", "</main>")
                        .doesNotContain("{navigation}", "{style}"));
        assertThat(Files.readString(site.resolve("docs/troubleshoot.html")))
                .contains("<a href=\"troubleshoot.html\" aria-current=\"page\">");
    }

    @Test
    void theSearchKnowsEachHeadingOfEachPage() throws IOException {
        assertThat(Files.readString(site.resolve("search-index.js")))
                .contains("[\"Concepts\",\"Stream order\",\"docs/concepts.html#stream-order\",\"Work on one stream");
        assertThat(Files.readString(site.resolve("docs/concepts.html")))
                .contains("<script src=\"../search.js\" data-root=\"../\">", "id=\"search\"");
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> files = Files.walk(site)) {
            return files.filter(file -> file.toString().endsWith(".html")).toList();
        }
    }

    private static Path target(Path file, String link) {
        String path = link.replaceFirst("#.*", "");
        return path.isEmpty() ? file : file.resolveSibling(path).normalize();
    }
}
