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
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// Traces that are generated, not recorded. Two traces with the same seed and capacity are equal.
///
/// The first five fragment memory on purpose; all but [#SHORT_STREAMS] of these leave blocks behind. The others
/// imitate kinds of programs: the seed draws their shapes, counts and lifetimes, and they free all their blocks.
enum GeneratedTrace {
    /// Blocks that stay between large, short-lived ones: [LongLived].
    LONG_LIVED,
    /// Caches that grow from ever larger starts: [Drifting].
    DRIFTING,
    /// A thousand streams: [ShortStreams].
    SHORT_STREAMS,
    /// Growth to nearly the whole device and back: [Sawtooth].
    SAWTOOTH,
    /// Alternating training and evaluation: [Phases].
    PHASES,
    /// Steps of varying shapes: [Training].
    TRAINING,
    /// Gradients that outlive micro-batches: [Accumulation].
    ACCUMULATION,
    /// Caches that grow with each token: [Generation].
    GENERATION,
    /// Requests that arrive and end: [Serving].
    SERVING,
    /// Memory that graphs keep: [Graphs].
    GRAPHS,
    /// One program on several streams: [Streams].
    STREAMS,
    /// Tables in a query engine: [Columns].
    COLUMNS,
    /// Pictures of every size: [Images].
    IMAGES;

    /// The seed if nobody asks for another one.
    static final long USUAL_SEED = 1;

    /// Sizes are shares of the device's capacity; this capacity is small enough for most devices.
    static final long USUAL_CAPACITY_BYTES = 16L << 30;

    /// Below this capacity, the smallest of those shares are no longer blocks.
    static final long MIN_CAPACITY_BYTES = 64L << 20;

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

    /// Writes the rows of the trace.
    ///
    /// @param capacityBytes the memory of the device; at most 95 percent of it is live at once
    /// @throws IllegalArgumentException if the device has less than [#MIN_CAPACITY_BYTES]
    void write(long seed, long capacityBytes, TraceSink sink) {
        if (capacityBytes < MIN_CAPACITY_BYTES) {
            throw new IllegalArgumentException(capacityBytes + " bytes are too few for a generated trace");
        }
        family(new Program(new SplittableRandom(seed), capacityBytes, sink)).run();
    }

    /// Returns the rows as CSV of format 2.
    String csv(long seed, long capacityBytes) {
        CsvRows rows = new CsvRows();
        write(seed, capacityBytes, rows);
        return rows.toString();
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

    private Runnable family(Program program) {
        return switch (this) {
            case LONG_LIVED -> new LongLived(program);
            case DRIFTING -> new Drifting(program);
            case SHORT_STREAMS -> new ShortStreams(program);
            case SAWTOOTH -> new Sawtooth(program);
            case PHASES -> new Phases(program);
            case TRAINING -> new Training(program);
            case ACCUMULATION -> new Accumulation(program);
            case GENERATION -> new Generation(program);
            case SERVING -> new Serving(program);
            case GRAPHS -> new Graphs(program);
            case STREAMS -> new Streams(program);
            case COLUMNS -> new Columns(program);
            case IMAGES -> new Images(program);
        };
    }
}
