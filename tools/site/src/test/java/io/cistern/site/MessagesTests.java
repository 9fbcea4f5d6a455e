package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.commonmark.ext.gfm.tables.TableBody;
import org.commonmark.ext.gfm.tables.TableRow;
import org.commonmark.node.Code;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// The messages of the page Troubleshoot are those of the program.
final class MessagesTests {
    private static final Path PAGE = Path.of("docs", "troubleshoot.md");

    /// Between the words of a message that are always the same.
    private static final Pattern CHANGES = Pattern.compile("[…'\":;()\\[\\]]|\\b\\d[\\w.]*|\\b[NM]\\b");

    private static final Pattern JOINED = Pattern.compile("\"\\s*\\+\\s*\"");
    private static final int MIN_LETTERS = 10;

    /// Of Java, Maven and the driver.
    private static final List<String> OTHERS =
            List.of("WARNING: A restricted method", "Source option 5", "CUDA_ERROR_", "AllocatorContractException");

    private static String sources;

    @BeforeAll
    static void readSources() throws IOException {
        StringBuilder all = new StringBuilder();
        try (Stream<Path> files = Files.walk(AllPages.REPOSITORY.root(), 12)) {
            for (Path file : files.filter(MessagesTests::isSource).toList()) {
                all.append(JOINED.matcher(Files.readString(file)).replaceAll(""));
            }
        }
        sources = all.toString();
    }

    private static boolean isSource(Path file) {
        String name = file.toString();
        return name.endsWith(".java") && name.contains("/src/main/") && !name.contains("/target/");
    }

    @Test
    void messagesAreThoseOfTheProgram() {
        List<String> messages = messages();
        assertThat(messages)
                .hasSizeGreaterThan(20)
                .filteredOn(message -> OTHERS.stream().noneMatch(message::startsWith))
                .allSatisfy(message ->
                        assertThat(isOfTheProgram(message)).as(message).isTrue());
    }

    @Test
    void aMessageThatTheProgramDoesNotHaveIsFound() {
        assertThat(isOfTheProgram("pool … has gone on holiday: call back later"))
                .isFalse();
    }

    /// Whatever stands as code in the first column, if it is long enough to be a message.
    private static List<String> messages() {
        return Nodes.all(TableBody.class, AllPages.at(PAGE).content()).stream()
                .flatMap(table -> Nodes.all(TableRow.class, table).stream())
                .flatMap(row -> Nodes.all(Code.class, row.getFirstChild()).stream())
                .map(Code::getLiteral)
                .filter(message -> fixed(message).findAny().isPresent())
                .toList();
    }

    private static boolean isOfTheProgram(String message) {
        return fixed(message).anyMatch(sources::contains);
    }

    private static Stream<String> fixed(String message) {
        return Arrays.stream(CHANGES.split(message)).map(String::strip).filter(part -> part.length() >= MIN_LETTERS);
    }
}
