package io.cistern.loader;

import io.cistern.ConfigurationException;
import io.cistern.spi.Availability;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// What a plug-in answers later than at discovery, with its breaches of the SPI made its own.
final class CheckedAnswers {
    private CheckedAnswers() {}

    /// A check that breaks is a no, with the breach as its reason.
    static Availability availability(Found<?> found, Supplier<@Nullable Availability> question) {
        try {
            Availability answer = question.get();
            return answer == null ? Availability.no(found.who() + " returns null from availability()") : answer;
        } catch (RuntimeException | LinkageError | AssertionError error) {
            return Availability.no(found.who() + " fails in availability(): " + error);
        }
    }

    /// Exceptions of the plug-in pass; a class that is missing, and a null, become a [ConfigurationException].
    static <T> T opened(Found<?> found, Supplier<@Nullable T> opening) {
        @Nullable T opened;
        try {
            opened = opening.get();
        } catch (LinkageError error) {
            throw new ConfigurationException(
                    "'" + found.name() + "' can't be opened: " + found.who() + " fails in open(): " + error, error);
        }
        if (opened == null) {
            throw new ConfigurationException(
                    "'" + found.name() + "' can't be opened: " + found.who() + " returns null from open()");
        }
        return opened;
    }
}
