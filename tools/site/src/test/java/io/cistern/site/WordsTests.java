package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The words of the pages: spelt right, plain, and on the map not too many.
final class WordsTests {
    private static final Spelling SPELLING = new Spelling();
    private static final Pattern WORD = Pattern.compile("\\S*[\\p{L}\\p{N}]\\S*");

    static List<Path> files() {
        return AllPages.files();
    }

    /// The words of a page that are in no list. A term of the field goes into `words.txt`.
    @ParameterizedTest
    @MethodSource("files")
    void wordsAreSpeltRight(Path file) {
        assertThat(Prose.of(AllPages.at(file).content()))
                .flatExtracting(SPELLING::unknown)
                .isEmpty();
    }

    @ParameterizedTest
    @MethodSource("files")
    void phrasesArePlain(Path file) {
        assertThat(Prose.of(AllPages.at(file).content()))
                .flatExtracting(BannedPhrases::in)
                .isEmpty();
    }

    @Test
    void theMapForMaintainersIsReadInOneSitting() throws IOException {
        String text = Files.readString(AllPages.REPOSITORY.root().resolve("ARCHITECTURE.md"));
        assertThat(WORD.matcher(text).results().count()).isLessThanOrEqualTo(3_000);
    }

    @Test
    void aWordThatIsMisspeltIsFound() {
        assertThat(SPELLING.unknown("An alocator frees ¤s; it doesn't recieve DeviceBuffers in Java's heap."))
                .containsExactly("alocator", "recieve");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "It has NONE: refused in the end.",
                "A ladder of steps.",
                "It runs all the same.",
                "This simply works.",
                "Who waits looks again.",
                "CUDA 13 has not got it.",
                "A pool is told what to keep.",
                "Instead, a page stands in its place.",
                "Somebody else has the GPU.",
                "A turn is no lock.",
                "No block is spoilt."
            })
    void aPhraseThatIsNotPlainIsFound(String sentence) {
        assertThat(BannedPhrases.in(sentence)).isNotEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"At the end of the stream it goes back.", "All the same pages.", "Who may write there."})
    void whatIsPlainPasses(String sentence) {
        assertThat(BannedPhrases.in(sentence)).isEmpty();
    }
}
