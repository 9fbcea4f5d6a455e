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

/// What programs print has none of the phrases that pages must not have.
final class MessagePhrasesTests {
    private static final Pattern JOINED = Pattern.compile("\"\\s*\\+\\s*\"");
    private static final Pattern COMMENT = Pattern.compile("(?m)^\\s*//.*");
    private static final Pattern FORMATTED_BYTES = Pattern.compile("\\{\\d} bytes");
    private static final Pattern LITERAL = Pattern.compile("\"([^\"\\\\\n]*(?:\\\\.[^\"\\\\\n]*)*)\"");

    @Test
    void messagesArePlain() throws IOException {
        List<String> found = new ArrayList<>();
        for (Path file : CommentsTests.sources()) {
            messages(Files.readString(file))
                    .flatMap(message -> BannedPhrases.in(message).stream())
                    .forEach(phrase -> found.add(file + ": " + phrase));
        }
        assertThat(found).isEmpty();
    }

    /// A logger would print a number that it formats itself as `34,603,008`.
    @Test
    void bytesLookTheSameInLogsAndExceptions() throws IOException {
        List<String> found = new ArrayList<>();
        for (Path file : CommentsTests.sources()) {
            messages(Files.readString(file))
                    .filter(message -> FORMATTED_BYTES.matcher(message).find())
                    .forEach(message -> found.add(file + ": " + message));
        }
        assertThat(found).isEmpty();
    }

    @Test
    void aPhraseInALiteralOfTwoLinesIsFound() {
        String source = """
            /// A folder is no file.
            throw refused("folder " + folder + " is"
                    + " no file");
            """;
        assertThat(messages(source).flatMap(message -> BannedPhrases.in(message).stream()))
                .hasSize(1);
    }

    /// Returns the literals of a source that have a space; those joined by `+` as one.
    private static Stream<String> messages(String source) {
        String joined = JOINED.matcher(COMMENT.matcher(source).replaceAll("")).replaceAll("");
        return LITERAL.matcher(joined).results().map(match -> match.group(1)).filter(text -> text.contains(" "));
    }
}
