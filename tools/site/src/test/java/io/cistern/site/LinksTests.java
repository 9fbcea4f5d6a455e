package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Links lead to files and headings that exist, and each page can be reached.
final class LinksTests {
    private static final Repository REPOSITORY = AllPages.REPOSITORY;
    private static final Map<Path, Page> PAGES = new HashMap<>();

    @BeforeAll
    static void readPages() {
        AllPages.all().forEach(page -> PAGES.put(page.file(), page));
    }

    static List<Path> files() {
        return AllPages.files();
    }

    @ParameterizedTest
    @MethodSource("files")
    void linksLeadToFilesAndHeadings(Path file) {
        assertThat(PAGES.get(file).targets())
                .filteredOn(target -> !target.isOutside())
                .allSatisfy(target -> {
                    assertThat(REPOSITORY.root().resolve(target.file()))
                            .as(target.text())
                            .exists();
                    if (!target.anchor().isEmpty()) {
                        assertThat(PAGES.get(target.file()))
                                .as("a page: %s", target.text())
                                .isNotNull();
                        assertThat(PAGES.get(target.file()).anchors().values())
                                .as(target.text())
                                .contains(target.anchor());
                    }
                });
    }

    @Test
    void everyPageIsReachedFromAnotherOne() {
        Set<Path> reached = new HashSet<>(Set.of(Repository.FIRST));
        PAGES.values()
                .forEach(page -> page.targets().stream()
                        .map(Target::file)
                        .filter(file -> !file.equals(page.file()))
                        .forEach(file -> reached.addAll(List.of(file, file.resolve("README.md")))));
        assertThat(reached).containsAll(PAGES.keySet());
    }

    @Test
    void theListOfPagesHasEveryPageOfDocs() {
        List<Path> listed =
                PAGES.get(Repository.LIST).targets().stream().map(Target::file).toList();
        assertThat(listed)
                .containsAll(PAGES.keySet().stream()
                        .filter(file -> Path.of("docs").equals(file.getParent()))
                        .filter(file -> !file.equals(Repository.LIST))
                        .toList());
    }

    @Test
    void everyDrawingStandsOnAPage() throws IOException {
        Set<Path> shown = new HashSet<>();
        PAGES.values().forEach(page -> page.targets().forEach(target -> shown.add(target.file())));
        assertThat(new SourceFiles(REPOSITORY.root()).in(Path.of("docs", "drawings")))
                .isNotEmpty()
                .allSatisfy(drawing -> assertThat(shown).contains(drawing));
    }

    @Test
    void aLinkToAHeadingThatIsNotThereIsFound() {
        Page page = new Page(Path.of("docs/x.md"), Markdown.parse("# A b\n[c](#a-c)"), Map.of());
        assertThat(page.targets()).singleElement().satisfies(target -> {
            assertThat(target.file()).isEqualTo(page.file());
            assertThat(Anchors.of(page.content()).values()).doesNotContain(target.anchor());
        });
    }

    @Test
    void headingsOfOneNameHaveDifferentAnchors() {
        assertThat(Anchors.of(Markdown.parse("# `a`, an Option\n## B\n## B")).values())
                .containsExactly("a-an-option", "b", "b-1");
    }

    @Test
    void docsStaySmall() throws IOException {
        long bytes = 0;
        for (Path file : new SourceFiles(REPOSITORY.root()).in(Path.of("docs"))) {
            bytes += Files.size(REPOSITORY.root().resolve(file));
        }
        assertThat(bytes).isLessThan(1 << 20);
    }
}
