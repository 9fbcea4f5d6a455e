package io.cistern.internal.names;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NearestNameTests {
    @Test
    void theNearestComesFirst() {
        assertThat(NearestName.first("cahcing", List.of("async", "direct", "caching")))
                .containsExactly("caching", "async", "direct");
    }

    @Test
    void theEquallyNearAreOrderedByAlphabet() {
        assertThat(NearestName.first("x", List.of("c", "a", "b"))).containsExactly("a", "b", "c");
    }

    @Test
    void thoseThatContainItComeBeforeNearerOnes() {
        assertThat(NearestName.first("PyTorch", List.of("python", "direct", "pytorch-expandable", "pytorch-native")))
                .containsExactly("pytorch-native", "pytorch-expandable", "python", "direct");
    }

    @Test
    void letterCaseDoesNotCount() {
        assertThat(NearestName.first("DIRECT", List.of("async", "direct"))).containsExactly("direct", "async");
    }

    @Test
    void nothingKnownIsSaidInAWord() {
        assertThat(NearestName.listed("x", List.of(), "y")).isEqualTo("none");
        assertThat(NearestName.listed("d", List.of("a", "b", "c"), "y")).isEqualTo("a, b, c");
        assertThat(NearestName.listed("d", List.of("a", "b", "c", "d"))).isEqualTo("d, a, b, …");
        assertThat(NearestName.listed("d", List.of("a", "b", "c", "d"), "y")).isEqualTo("d, a, b, … (all: y)");
    }

    @ParameterizedTest
    @CsvSource({
        "'',      '',      0",
        "'',      abc,     3",
        "abc,     '',      3",
        "abc,     abc,     0",
        "abc,     acb,     1",
        "ab,      ba,      1",
        "kitten,  sitting, 3",
        "async,   asnyc,   1",
        "direct,  drect,   1",
        "flaw,    lawn,    2",
        "ca,      abc,     3"
    })
    void countsInsertionsDeletionsReplacementsAndSwaps(String a, String b, int distance) {
        assertThat(NearestName.distance(a, b)).isEqualTo(distance);
        assertThat(NearestName.distance(b, a)).isEqualTo(distance);
    }
}
