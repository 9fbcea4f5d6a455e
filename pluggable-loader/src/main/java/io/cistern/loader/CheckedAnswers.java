package io.cistern.loader;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.Availability;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Checks the answers that a plug-in gives after discovery, and reports its breaches of the SPI as the
/// plug-in's own.
final class CheckedAnswers {
    private CheckedAnswers() {}

    /// Asks for availability. A check that throws or does not end counts as no, with the breach as its reason.
    static Availability availability(DiscoveredProvider<?> found, Supplier<@Nullable Availability> question) {
        return availability(found, question, ProbeTimeout.USUAL);
    }

    static Availability availability(
            DiscoveredProvider<?> found, Supplier<@Nullable Availability> question, ProbeTimeout timeout) {
        try {
            @Nullable
            Availability answer = DiscoveredProvider.isOurs(found.className())
                    ? question.get()
                    : timeout.<@Nullable Availability>ask(found.name(), question::get);
            return answer == null ? Availability.no(found.who() + " returns null from availability()") : answer;
        } catch (TimeoutException e) {
            return Availability.no(found.who() + " " + timeout.exhausted("availability()"));
        } catch (RuntimeException | LinkageError | AssertionError error) {
            return Availability.no(found.who() + " fails in availability(): " + Problem.of(error));
        }
    }

    /// Opens an allocator or source. Exceptions of the plug-in pass through; a missing class and a null become
    /// a [ConfigurationException].
    static <T> T opened(DiscoveredProvider<?> found, Supplier<@Nullable T> opening) {
        return answered(found, "be opened", "open()", opening);
    }

    /// Asks a plug-in which allocator to open instead, with the same checks as [#opened].
    static <T> T redirect(DiscoveredProvider<?> found, Supplier<@Nullable T> question) {
        return answered(found, "be opened", "redirect()", question);
    }

    /// Asks a plug-in for its options, with the same checks as [#opened].
    static <T> T options(DiscoveredProvider<?> found, Supplier<@Nullable T> options) {
        return answered(found, "list its options", "options()", options);
    }

    /// Asks a plug-in whether it serves graphs, with the same checks as [#opened].
    static boolean graphs(DiscoveredProvider<?> found, Supplier<@Nullable Boolean> question) {
        return answered(found, "say whether it serves graphs", "servesGraphs()", question);
    }

    private static <T> T answered(
            DiscoveredProvider<?> found, String what, String method, Supplier<@Nullable T> question) {
        @Nullable T answer;
        try {
            answer = question.get();
        } catch (LinkageError error) {
            throw new ConfigurationException(
                    "'" + found.name() + "' can't " + what + ": " + found.who() + " fails in " + method + ": "
                            + Problem.of(error),
                    error);
        }
        if (answer == null) {
            throw new ConfigurationException(
                    "'" + found.name() + "' can't " + what + ": " + found.who() + " returns null from " + method);
        }
        return answer;
    }
}
