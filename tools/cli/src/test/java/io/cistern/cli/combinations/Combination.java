package io.cistern.cli.combinations;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/// What a [CombinedProgram] runs with: a value of each axis, and the seed of its random choices.
///
/// @param values by axis, in the order of [#AXES]
record Combination(List<Enum<?>> values, long seed) {
    /// The allocator or source.
    enum Source {
        CACHING("caching"),
        TIGHT("caching:fit=tight"),
        WAITING("caching:reuse=wait"),
        STABLE("caching:stable_mapping=true"),
        WITHOUT_THREAD_CACHES("caching:thread_caches=false"),
        VMM("caching:source=vmm"),
        SEGMENTS("caching:expandable_segments=false"),
        UNSPLIT("caching:splits=false"),
        LINEAR("caching:source=linear"),
        MANAGED("caching:source=managed"),
        DRIVER_POOL("caching:source=driver_pool"),
        NCCL("caching:source=nccl"),
        SYMMETRIC("symmetric:bytes=16MiB,largest=4MiB"),
        ASYNC("async"),
        ASYNC_PER_STREAM("async:per_stream=true"),
        ASYNC_SMALL_POOL("async:small_pool=1MiB"),
        ASYNC_ADAPTIVE("async:release_threshold=adaptive"),
        ASYNC_DEFAULT_POOL("async:pool=default"),
        DIRECT("direct");

        /// Those that give pages back and keep addresses.
        private static final Set<Source> SLEEPING =
                EnumSet.of(CACHING, TIGHT, WAITING, STABLE, WITHOUT_THREAD_CACHES, VMM);

        final String spec;

        Source(String spec) {
            this.spec = spec;
        }

        private boolean isCaching() {
            return spec.startsWith("caching");
        }
    }

    /// Which limit holds.
    enum Limit {
        NONE,
        DEVICE,
        /// Of all devices together, and of each.
        TREE,
        ALLOCATOR,
        SCOPE,
        /// The allocator's own, on reserved memory.
        RESERVED
    }

    /// How requests get to the allocator.
    enum Way {
        CURRENT,
        ENTERED,
        CALLED,
        POOL,
        /// A pool with scopes that begin and end without a block.
        BEGUN;

        boolean isPool() {
            return this == POOL || this == BEGUN;
        }
    }

    /// What stands around the allocator.
    enum Adaptor {
        NONE(""),
        ALIGNED("aligned:alignment=4096"),
        ARBITER("arbiter:patience_millis=1"),
        CONFINED("confined"),
        EVENTS("events:threshold=64MiB"),
        LIMIT("limit:bytes=96MiB"),
        LOGGING("logging:file=/dev/null"),
        PREFETCH("prefetch"),
        RETRY("retry:attempts=1"),
        STATISTICS("statistics"),
        TRACKING("tracking");

        final String spec;

        Adaptor(String spec) {
            this.spec = spec;
        }
    }

    enum Check {
        OFF,
        CHECKED,
        PARANOID
    }

    enum History {
        OFF,
        ON,
        WITH_STACKS_AND_LEAKS
    }

    enum Graphs {
        NONE,
        CAPTURED
    }

    enum Sleep {
        NONE,
        KEEP,
        DROP
    }

    enum Compaction {
        NONE,
        WITH_PAUSE
    }

    enum Spilling {
        NONE,
        STORE
    }

    enum Threads {
        ONE,
        PLATFORM,
        VIRTUAL
    }

    enum Devices {
        ONE,
        TWO
    }

    /// What goes wrong meanwhile.
    enum Trouble {
        NONE,
        /// Streams lag far behind the host.
        LONG_WORK,
        /// Another library takes device memory and gives it back.
        OTHERS,
        /// Calls of the driver fail.
        DRIVER,
        /// The Java heap is full when a driver call is about to be made.
        HEAP
    }

    static final List<Class<? extends Enum<?>>> AXES = List.of(
            Source.class,
            Limit.class,
            Way.class,
            Adaptor.class,
            Check.class,
            History.class,
            Graphs.class,
            Sleep.class,
            Compaction.class,
            Spilling.class,
            Threads.class,
            Devices.class,
            Trouble.class);

    /// Returns whether two values of different axes go together.
    static boolean together(Enum<?> one, Enum<?> other) {
        return isAllowed(one, other) && isAllowed(other, one);
    }

    private static boolean isAllowed(Enum<?> value, Enum<?> other) {
        return switch (value) {
            case Check check when check != Check.OFF -> !(other instanceof Source source) || source.isCaching();
            case Limit limit
            when limit == Limit.RESERVED ->
                other != Adaptor.LIMIT && (!(other instanceof Source source) || source.isCaching());
            case Limit limit when limit == Limit.SCOPE -> other != Way.CURRENT && other != Way.BEGUN;
            case Adaptor adaptor
            when adaptor == Adaptor.PREFETCH -> !(other instanceof Source) || other == Source.MANAGED;
            case Adaptor adaptor
            when adaptor == Adaptor.CONFINED -> !(other instanceof Threads) || other == Threads.ONE;
            case Sleep sleep
            when sleep != Sleep.NONE ->
                switch (other) {
                    case Source source -> Source.SLEEPING.contains(source);
                    case Way way -> way.isPool();
                    case Adaptor adaptor -> adaptor == Adaptor.NONE;
                    case Check check -> check != Check.PARANOID;
                    default -> true;
                };
            default -> true;
        };
    }

    /// Reads what [#text] has written.
    static Combination parse(String text) {
        String[] parts = text.split("[/@]");
        List<Enum<?>> values = new ArrayList<>();
        for (int axis = 0; axis < AXES.size(); axis++) {
            String name = parts[axis];
            for (Enum<?> value : AXES.get(axis).getEnumConstants()) {
                if (value.name().equals(name)) {
                    values.add(value);
                }
            }
        }
        if (values.size() != AXES.size()) {
            throw new IllegalArgumentException("not a combination: " + text);
        }
        return new Combination(List.copyOf(values), Long.parseLong(parts[AXES.size()]));
    }

    String text() {
        return values.stream().map(Enum::name).collect(Collectors.joining("/")) + "@" + seed;
    }

    <E extends Enum<E>> E of(Class<E> axis) {
        return axis.cast(values.get(AXES.indexOf(axis)));
    }

    boolean has(Enum<?> value) {
        return values.contains(value);
    }

    boolean isOfNccl() {
        return has(Source.NCCL) || has(Source.SYMMETRIC);
    }

    /// Returns the spec of the allocator with what stands around it.
    String spec() {
        String own = of(Source.class).spec;
        if (!has(Check.OFF)) {
            own = with(own, "check=" + (has(Check.CHECKED) ? "checked" : "paranoid"));
        }
        if (has(Limit.RESERVED)) {
            own = with(own, "max_bytes=96MiB");
        }
        String around = of(Adaptor.class).spec;
        return around.isEmpty() ? own : with(around, "upstream=\"" + own + '"');
    }

    private static String with(String spec, String option) {
        return spec + (spec.contains(":") ? "," : ":") + option;
    }
}
