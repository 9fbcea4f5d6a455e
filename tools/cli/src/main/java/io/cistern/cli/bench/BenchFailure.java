package io.cistern.cli.bench;

import io.cistern.cli.common.ExitCode;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.io.Serial;
import java.util.Arrays;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Says that a case could not be measured; the message goes to standard error.
final class BenchFailure extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Finds the exit code of a JVM in the message of JMH.
    private static final Pattern EXIT_CODE = Pattern.compile("exit code (\\d+)");

    private final int exitCode;

    private BenchFailure(String message, int exitCode, Throwable cause) {
        super(message, cause);
        this.exitCode = exitCode;
    }

    /// Wraps a failure of JMH.
    ///
    /// @param thrown the exception from JMH
    /// @param what the measured case
    /// @param report the output of JMH up to the failure
    static BenchFailure of(Exception thrown, String what, String report) {
        return causes(thrown)
                .filter(DeviceOutOfMemoryException.class::isInstance)
                .findFirst()
                .map(refused -> new BenchFailure(
                        "cistern: " + what + ": " + refused.getMessage(), ExitCode.ALLOCATION_FAILED, thrown))
                .orElseGet(() -> new BenchFailure(
                        "cistern: " + what + " could not be measured:\n" + report, ownExitCode(thrown), thrown));
    }

    private static int ownExitCode(Exception thrown) {
        return causes(thrown)
                .map(Throwable::getMessage)
                .filter(Objects::nonNull)
                .flatMap(message -> EXIT_CODE.matcher(message).results())
                .map(found -> Integer.parseInt(found.group(1)))
                .findFirst()
                .orElse(ExitCode.UNEXPECTED);
    }

    private static Stream<Throwable> causes(Throwable thrown) {
        Stream<Throwable> below =
                Stream.concat(Stream.ofNullable(thrown.getCause()), Arrays.stream(thrown.getSuppressed()));
        return Stream.concat(Stream.of(thrown), below.flatMap(BenchFailure::causes));
    }

    /// Returns the exit code for the program.
    int exitCode() {
        return exitCode;
    }
}
