package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.commonmark.node.Code;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Pages for maintainers name classes that exist.
final class ClassNamesTests {
    private static final Pattern TYPE = Pattern.compile("([A-Z][a-z]+(?:[A-Z][a-z]*)+)(?:[.#(].*)?");
    private static final List<String> JDK = List.of("java.lang.", "java.lang.foreign.", "java.util.");

    private static Set<String> sources;

    @BeforeAll
    static void findSources() throws IOException {
        try (Stream<Path> files = Files.walk(AllPages.REPOSITORY.root())) {
            sources = files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".java"))
                    .map(name -> name.replace(".java", ""))
                    .collect(Collectors.toSet());
        }
    }

    static List<Page> pages() {
        return AllPages.all().stream()
                .filter(page ->
                        page.file().startsWith("docs/decisions") || page.file().startsWith("ARCHITECTURE.md"))
                .toList();
    }

    @ParameterizedTest
    @MethodSource("pages")
    void classesThatAreNamedExist(Page page) {
        assertThat(unknown(page)).isEmpty();
    }

    @Test
    void aClassThatIsNotThereIsFound() {
        Page page = new Page(
                Path.of("x.md"), Markdown.parse("`OwnerTable`, `Depot`, `LaneExchange.take`"), java.util.Map.of());
        assertThat(unknown(page)).containsExactly("LaneExchange");
    }

    private static List<String> unknown(Page page) {
        return Nodes.all(Code.class, page.content()).stream()
                .map(code -> TYPE.matcher(code.getLiteral()))
                .filter(match -> match.matches())
                .map(match -> match.group(1))
                .filter(name -> !sources.contains(name) && JDK.stream().noneMatch(start -> isClass(start + name)))
                .toList();
    }

    private static boolean isClass(String name) {
        try {
            Class.forName(name, false, ClassNamesTests.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }
}
