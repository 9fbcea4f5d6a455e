package io.cistern.benchmarks.generated;

import io.cistern.cli.common.InputException;
import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;

/// Traces that are generated, not recorded. Two traces with the same seed and capacity are equal.
///
/// The first five are [Fragmenting] on purpose; all but [#SHORT_STREAMS] of these leave blocks behind. The others
/// imitate kinds of programs: the seed draws their shapes, counts and lifetimes, and they free all their blocks.
enum GeneratedTrace {
    LONG_LIVED(Fragmenting::longLived),
    DRIFTING(Fragmenting::drifting),
    SHORT_STREAMS(Fragmenting::shortStreams),
    SAWTOOTH(Fragmenting::sawtooth),
    PHASES(Fragmenting::phases),
    TRAINING(Training::run),
    ACCUMULATION(Accumulation::run),
    GENERATION(program -> new Generation(program).run()),
    SERVING(program -> new Serving(program).run()),
    GRAPHS(program -> new Graphs(program).run()),
    STREAMS(program -> new Streams(program).run()),
    COLUMNS(Columns::run),
    IMAGES(program -> new Images(program).run());

    /// The seed if nobody asks for another one.
    static final long USUAL_SEED = 1;

    /// Sizes are shares of the device's capacity; this capacity is small enough for most devices.
    static final long USUAL_CAPACITY_BYTES = 16L << 30;

    /// Below this capacity, the smallest of those shares are no longer blocks.
    static final long MIN_CAPACITY_BYTES = 64L << 20;

    @SuppressWarnings("ImmutableEnumChecker") // The functions have no state.
    private final Consumer<Program> family;

    GeneratedTrace(Consumer<Program> family) {
        this.family = family;
    }

    /// Returns the names of all generated traces.
    static List<String> labels() {
        return Stream.of(values()).map(GeneratedTrace::label).toList();
    }

    /// Returns the name on the command line.
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /// Returns the trace of a name, if there is one.
    static Optional<GeneratedTrace> named(String label) {
        return Stream.of(values()).filter(each -> each.label().equals(label)).findFirst();
    }

    /// Returns the rows as CSV of format 2.
    ///
    /// @param capacityBytes the memory of the device; at most 95 percent of it is live at once
    /// @throws IllegalArgumentException if the device has less than [#MIN_CAPACITY_BYTES]
    String csv(long seed, long capacityBytes) {
        if (capacityBytes < MIN_CAPACITY_BYTES) {
            throw new IllegalArgumentException(capacityBytes + " bytes are too few for a generated trace");
        }
        Program program = new Program(seed, capacityBytes);
        family.accept(program);
        return program.csv();
    }

    /// Builds the trace for replays.
    Trace build(long seed, long capacityBytes) {
        byte[] csv = csv(seed, capacityBytes).getBytes(StandardCharsets.US_ASCII);
        try {
            return TraceReader.read(label(), new ByteArrayInputStream(csv));
        } catch (InputException | IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
