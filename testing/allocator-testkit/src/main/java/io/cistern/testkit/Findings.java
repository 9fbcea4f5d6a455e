package io.cistern.testkit;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Fails tests with findings. The first one begins the message, because Maven's summary shows only one line.
final class Findings {
    /// The most that a failure prints: one mistake can be found thousands of times.
    private static final int SHOWN = 5;

    private Findings() {}

    /// Fails if there are findings.
    ///
    /// @param what describes the findings; empty if they describe themselves
    static void assertNone(String what, Stream<?> findings) {
        List<?> first = findings.limit(SHOWN).toList();
        if (!first.isEmpty()) {
            String begin = what.isEmpty() ? "" : what + ": ";
            throw new AssertionError(first.stream().map(String::valueOf).collect(Collectors.joining("\n", begin, "")));
        }
    }
}
