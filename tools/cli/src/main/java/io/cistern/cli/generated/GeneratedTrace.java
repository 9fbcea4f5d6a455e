package io.cistern.cli.generated;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// Traces that are made and not recorded. Two with the same seed and capacity are equal.
///
/// The first five fragment memory on purpose and leave blocks behind. The others imitate programs of a kind: the seed
/// draws their shapes, counts and lifetimes, and they free what they allocate.
public enum GeneratedTrace {
    /// Blocks that stay between large ones that come and go: [LongLived].
    LONG_LIVED,
    /// Caches that grow from ever larger starts: [Drifting].
    DRIFTING,
    /// A thousand streams: [ShortStreams].
    SHORT_STREAMS,
    /// All of the device and back: [Sawtooth].
    SAWTOOTH,
    /// Training and evaluation in turns: [Phases].
    PHASES,
    /// Steps of varying shapes: [Training].
    TRAINING,
    /// Gradients that outlive micro-batches: [Accumulation].
    ACCUMULATION,
    /// Caches that grow with each token: [Generation].
    GENERATION,
    /// Requests that come and go: [Serving].
    SERVING,
    /// Memory that graphs keep: [Graphs].
    GRAPHS,
    /// One program on several streams: [Streams].
    STREAMS,
    /// Tables in a query engine: [Columns].
    COLUMNS,
    /// Pictures of every size: [Images].
    IMAGES;

    /// What is made when nobody asks for another one.
    public static final long USUAL_SEED = 1;

    /// Sizes are shares of the device they are made for; this one is small enough for most.
    public static final long USUAL_CAPACITY_BYTES = 16L << 30;

    /// Below this the smallest of those shares are no blocks any more.
    public static final long MIN_CAPACITY_BYTES = 64L << 20;

    /// The names of all.
    public static List<String> labels() {
        return Stream.of(values()).map(GeneratedTrace::label).toList();
    }

    /// As the command line names it.
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /// The one of a name.
    public static Optional<GeneratedTrace> named(String label) {
        return Stream.of(values()).filter(each -> each.label().equals(label)).findFirst();
    }

    /// Makes the rows.
    ///
    /// @param capacityBytes the memory of the device; the most bytes live at once are at most 95 percent of it
    /// @throws IllegalArgumentException for a device of less than [#MIN_CAPACITY_BYTES]
    public void write(long seed, long capacityBytes, TraceSink sink) {
        if (capacityBytes < MIN_CAPACITY_BYTES) {
            throw new IllegalArgumentException(capacityBytes + " bytes are too few for a generated trace");
        }
        family(new Program(new SplittableRandom(seed), capacityBytes, sink)).run();
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
