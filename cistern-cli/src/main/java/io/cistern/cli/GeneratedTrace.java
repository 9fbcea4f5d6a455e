package io.cistern.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// Traces that are made and not recorded: what fragments memory. Two with the same seed and capacity are equal.
enum GeneratedTrace {
    /// Long-lived small and middle-sized blocks, each allocated between large ones that come and go.
    LONG_LIVED {
        @Override
        void write(Program program) {
            List<Block> kept = new ArrayList<>();
            List<Block> passing = new ArrayList<>();
            for (int i = 0; i < 12_000; i++) {
                if (program.liveBytes() > 0.7 * program.capacityBytes() || program.chance(0.45)) {
                    program.freeOneOf(passing);
                } else {
                    passing.add(program.allocate(program.anyOf(1 << 20, program.capacityBytes() / 64), 1));
                }
                if (program.chance(0.3)) {
                    kept.add(program.allocate(program.anyOf(256, 2 << 20), 1));
                }
                if (kept.size() > 1_500) {
                    program.freeOneOf(kept);
                }
            }
        }
    },

    /// Key-value caches of 48 sequences, which grow by copying until their sequence ends; each goes on from a
    /// larger start than the one before.
    DRIFTING {
        @Override
        void write(Program program) {
            long mostBytes = program.capacityBytes() / 96;
            List<Block> caches = new ArrayList<>();
            long startBytes = mostBytes / 64;
            for (int i = 0; i < 48; i++) {
                caches.add(program.allocate(program.anyOf(startBytes, mostBytes), 1));
            }
            for (int i = 0; i < 15_000; i++) {
                int chosen = program.choose(caches.size());
                Block former = caches.get(chosen);
                long grown = former.byteSize() + former.byteSize() / 16 + program.anyOf(256, 64 << 10);
                startBytes += startBytes / 4096;
                boolean ends = grown > mostBytes || program.chance(0.02);
                caches.set(chosen, program.allocate(ends ? Math.min(startBytes, mostBytes) : grown, 1));
                program.free(former);
            }
        }
    },

    /// A thousand streams, three at a time, each with a working set of its own that is gone when the stream ends.
    SHORT_STREAMS {
        @Override
        void write(Program program) {
            List<Block> former = List.of();
            for (int stream = 1; stream <= 1_000; stream++) {
                List<Block> own = new ArrayList<>();
                long wantedBytes = program.capacityBytes() / 64;
                for (long bytes = 0; bytes < wantedBytes; bytes += own.getLast().byteSize()) {
                    own.add(program.allocate(program.anyOf(512, wantedBytes / 4), stream));
                    if (program.chance(0.3)) {
                        program.freeOneOf(own);
                        own.add(program.allocate(program.anyOf(512, 1 << 20), stream));
                    }
                }
                program.end(former);
                former = own;
            }
            program.end(former);
        }
    },

    /// Up to 95 percent of the device and back to almost nothing, with other sizes each time.
    SAWTOOTH {
        @Override
        void write(Program program) {
            long fullBytes = (long) (0.95 * program.capacityBytes());
            List<Block> live = new ArrayList<>();
            for (int tooth = 0; tooth < 8; tooth++) {
                long leastBytes = 4L << 10 << tooth;
                long room = fullBytes - program.liveBytes();
                while (room >= leastBytes) {
                    long byteSize = program.anyOf(leastBytes, program.capacityBytes() / 128);
                    live.add(program.allocate(Math.min(room, byteSize), 1));
                    room = fullBytes - program.liveBytes();
                }
                while (program.liveBytes() > program.capacityBytes() / 50) {
                    program.freeOneOf(live);
                }
            }
        }
    },

    /// Training and evaluation in turns: steps that keep what each of 48 layers makes until it is gone through
    /// again backwards, up to 70 percent of the device, and steps that keep one layer, over weights of 15
    /// percent. Batches differ in size.
    PHASES {
        private static final int LAYERS = 48;

        @Override
        void write(Program program) {
            long weightBytes = program.capacityBytes() * 15 / 100 / LAYERS;
            for (int layer = 0; layer < LAYERS; layer++) {
                program.allocate(weightBytes, 1);
            }
            for (int turn = 0; turn < 3; turn++) {
                for (int step = 0; step < 20; step++) {
                    train(program, batch(program));
                }
                for (int step = 0; step < 60; step++) {
                    evaluate(program, batch(program));
                }
            }
        }

        private long batch(Program program) {
            return program.anyOf(program.capacityBytes() * 35 / 100 / LAYERS, program.capacityBytes() / 2 / LAYERS);
        }

        private void train(Program program, long layerBytes) {
            List<Block> kept = new ArrayList<>();
            for (int layer = 0; layer < LAYERS; layer++) {
                Block passing = program.allocate(layerBytes / 4, 1);
                kept.add(program.allocate(layerBytes, 1));
                program.free(passing);
            }
            while (!kept.isEmpty()) {
                Block gradient = program.allocate(layerBytes / 4, 1);
                program.free(kept.removeLast());
                program.free(gradient);
            }
        }

        private void evaluate(Program program, long layerBytes) {
            Block former = program.allocate(layerBytes, 1);
            for (int layer = 1; layer < LAYERS; layer++) {
                Block next = program.allocate(layerBytes, 1);
                program.free(former);
                former = next;
            }
            program.free(former);
        }
    };

    /// What is made when nobody asks for another one.
    static final long USUAL_SEED = 1;

    /// Sizes are shares of the device they are made for; this one is small enough for most.
    static final long USUAL_CAPACITY_BYTES = 16L << 30;

    abstract void write(Program program);

    /// Below this the smallest of those shares are no blocks any more.
    static final long MIN_CAPACITY_BYTES = 64L << 20;

    /// The names of all.
    static List<String> labels() {
        return Stream.of(values()).map(GeneratedTrace::label).toList();
    }

    /// As the command line names it.
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /// The one of a name.
    static Optional<GeneratedTrace> named(String label) {
        return Stream.of(values()).filter(each -> each.label().equals(label)).findFirst();
    }

    /// Makes the rows.
    ///
    /// @param capacityBytes the memory of the device; the most bytes live at once are at most 95 percent of it
    /// @throws UsageException for a device that is too small
    void write(long seed, long capacityBytes, TraceSink sink) {
        requireCapacity(capacityBytes);
        write(new Program(new SplittableRandom(seed), capacityBytes, sink));
    }

    /// Throws if a device of so much memory is too small for any of them.
    ///
    /// @throws UsageException then
    static void requireCapacity(long capacityBytes) {
        if (capacityBytes < MIN_CAPACITY_BYTES) {
            throw new UsageException(
                    "--capacity must be at least 64MiB for a generated trace, not " + ByteSize.format(capacityBytes));
        }
    }

    /// Makes it ready for a replay.
    Trace build(long seed, long capacityBytes) {
        TraceBuilder builder = new TraceBuilder();
        write(seed, capacityBytes, new TraceSink() {
            @Override
            public void allocate(long id, long byteSize, long stream) {
                builder.allocate(id, byteSize, 0, stream);
            }

            @Override
            public void free(long id, long stream) {
                builder.free(id, 0, stream);
            }

            @Override
            public void end(long stream) {
                builder.end(0, stream);
            }
        });
        return builder.build(label());
    }

    /// A live block.
    record Block(long id, long byteSize, long stream) {}

    /// A program in the making: its random numbers, and what it has live.
    static final class Program {
        private final SplittableRandom random;
        private final long capacityBytes;
        private final TraceSink sink;
        private long blocks;
        private long liveBytes;

        Program(SplittableRandom random, long capacityBytes, TraceSink sink) {
            this.random = random;
            this.capacityBytes = capacityBytes;
            this.sink = sink;
        }

        long capacityBytes() {
            return capacityBytes;
        }

        long liveBytes() {
            return liveBytes;
        }

        boolean chance(double probability) {
            return random.nextDouble() < probability;
        }

        int choose(int count) {
            return random.nextInt(count);
        }

        /// A size between two, each power of two as often as the next.
        long anyOf(long leastBytes, long mostBytes) {
            double power = random.nextDouble() * Math.log((double) mostBytes / leastBytes);
            return (long) (leastBytes * Math.exp(power));
        }

        Block allocate(long byteSize, long stream) {
            Block block = new Block(++blocks, byteSize, stream);
            sink.allocate(block.id(), byteSize, stream);
            liveBytes += byteSize;
            return block;
        }

        void free(Block block) {
            sink.free(block.id(), block.stream());
            liveBytes -= block.byteSize();
        }

        /// Frees a random one, if there is any; the others may change places.
        void freeOneOf(List<Block> live) {
            if (!live.isEmpty()) {
                int chosen = choose(live.size());
                free(live.get(chosen));
                live.set(chosen, live.getLast());
                live.removeLast();
            }
        }

        /// Frees all blocks of a stream, and ends it.
        void end(List<Block> own) {
            own.forEach(this::free);
            if (!own.isEmpty()) {
                sink.end(own.getFirst().stream());
            }
        }
    }
}
