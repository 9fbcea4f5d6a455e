package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// The setting `cistern.observe` where no observer is on the class path.
final class MissingObserverTests {
    @Test
    void anObserverOfCisternIsNamedWithItsArtifact() {
        assertThat(NamedObservers.problems("jfr, streams"))
                .containsExactly(
                        "observer 'jfr' is in cistern-observability, which is not on the class path",
                        "the stream check is in cistern-stream-hazards, which is not on the class path");
    }

    @Test
    void anUnknownNameIsListedWithThoseOfCistern() {
        assertThat(NamedObservers.problems("jxm"))
                .containsExactly("there is no observer 'jxm'; known, nearest first: jmx, jfr, nvtx, …");
    }
}
