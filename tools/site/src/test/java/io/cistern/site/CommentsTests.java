package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// The comments of the product's code name an actor: no sentence begins with a clause in the place of a noun. Turns
/// of phrase that were found and replaced do not return.
final class CommentsTests {
    private static final Pattern COMMENT = Pattern.compile("^\\s*/{2,3} (.*)");
    private static final Pattern CLAUSE = Pattern.compile(
            "(?:^|[.:] |\\*\\* )(?:Who|What|Whoever|Whatever|One that) (?!.*\\?)|(?:in the end|all the same)[.,;)]"
                    + "|\\b[Ii]n place of\\b|\\b(?:has|have) not got (?!past)|^Is told |\\bmended\\b");

    @Test
    void noSentenceBeginsWithAClauseInPlaceOfANoun() throws IOException {
        List<String> found = new ArrayList<>();
        for (Path file : sources()) {
            found.addAll(
                    in(Files.readAllLines(file)).map(line -> file + ": " + line).toList());
        }
        assertThat(found).isEmpty();
    }

    @Test
    void aClauseIsFound() {
        assertThat(in(List.of(
                        "    /// What is idle.",
                        "// It ends all the same.",
                        "/// What now?",
                        "String text = \"What is idle\";",
                        "/// Returns what is idle.",
                        "/// Is told when it is idle.",
                        "/// An array in place of objects.")))
                .containsExactly(
                        "What is idle.",
                        "It ends all the same.",
                        "Is told when it is idle.",
                        "An array in place of objects.");
    }

    private static Stream<String> in(List<String> lines) {
        return lines.stream()
                .map(COMMENT::matcher)
                .filter(comment -> comment.matches())
                .map(comment -> comment.group(1))
                .filter(text -> CLAUSE.matcher(text).find());
    }

    /// Returns the sources of the product, without its tests.
    static List<Path> sources() throws IOException {
        try (Stream<Path> files = Files.walk(AllPages.REPOSITORY.root())) {
            List<Path> sources = files.filter(file -> file.toString().endsWith(".java"))
                    .filter(file -> file.toString().contains("/src/main/java/"))
                    .toList();
            assertThat(sources).hasSizeGreaterThan(1_000);
            return sources;
        }
    }
}
