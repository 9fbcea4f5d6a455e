package io.cistern.cli.report;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;

/// Snapshots of programs with one known defect each.
final class SampleSnapshots {
    static final long TRAINING = 0x7f2c_0000_1a00L;
    static final long COPIES = 0x7f2c_0000_2b00L;
    static final String LEAKING_SITE = "com.acme.search.EmbeddingCache.put(EmbeddingCache.java:57)";

    private static final long MIB = SampleProgram.MIB;
    private static final long MILLISECOND = 1_000_000;
    private static final String STEP = "com.acme.train.Trainer.step(Trainer.java:88)";
    private static final String MAIN = "com.acme.train.Main.main(Main.java:21)";

    private SampleSnapshots() {}

    /// Writes all samples into a folder, for a look at their pages.
    ///
    /// @param arguments the folder
    public static void main(String[] arguments) throws IOException {
        Path folder = Files.createDirectories(Path.of(arguments[0]));
        healthy(folder.resolve("healthy.json"));
        leak(folder.resolve("leak.json"));
        fragmented(folder.resolve("fragmented.json"));
        stranded(folder.resolve("stranded.json"));
        outOfMemory(folder.resolve("out-of-memory.json"));
        large(folder.resolve("large.json"), 100_000);
    }

    /// A training that gives back all that it takes.
    static Path healthy(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        weights(program);
        for (int step = 0; step < 200; step++) {
            step(program, step);
        }
        return program.write(file, "on demand");
    }

    /// The same training beside a cache that only grows: `3 MiB` each step.
    static Path leak(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        weights(program);
        for (int step = 0; step < 200; step++) {
            step(program, step);
            program.on("indexer")
                    .after(3 * MILLISECOND)
                    .allocate(3 * MIB - 100, TRAINING, LEAKING_SITE, "com.acme.search.Index.add(Index.java:30)");
            if (step == 120) {
                program.on("indexer").annotate("reindex </script> begins");
            }
        }
        return program.write(file, "on demand");
    }

    /// Small blocks that stay lie between large ones that went: half of the memory is idle, in pieces.
    static Path fragmented(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        List<Long> large = new ArrayList<>();
        for (int i = 0; i < 400; i++) {
            program.on("loader").after(20 * MILLISECOND);
            large.add(program.allocate(3 * MIB, TRAINING, "com.acme.io.Batches.read(Batches.java:19)", MAIN));
            program.allocate(700 << 10, TRAINING, "com.acme.io.Labels.keep(Labels.java:44)", MAIN);
        }
        program.annotate("epoch 2");
        for (long address : large) {
            program.after(5 * MILLISECOND).free(address);
        }
        for (int i = 0; i < 100; i++) {
            program.on("main").after(30 * MILLISECOND);
            long logits = program.allocate(MIB, TRAINING, "com.acme.train.Loss.logits(Loss.java:12)", STEP, MAIN);
            program.after(10 * MILLISECOND).free(logits);
        }
        return program.write(file, "on demand");
    }

    /// A stream that copied at first, and holds on to what it had.
    static Path stranded(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        weights(program);
        List<Long> staged = new ArrayList<>();
        for (int i = 0; i < 24; i++) {
            program.on("prefetch").after(10 * MILLISECOND);
            staged.add(program.allocate(40 * MIB, COPIES, "com.acme.io.Prefetch.stage(Prefetch.java:63)"));
        }
        for (long address : staged) {
            program.streamWaits(TRAINING, COPIES).after(5 * MILLISECOND).free(address);
        }
        for (int step = 0; step < 200; step++) {
            step(program, step);
        }
        return program.write(file, "on demand");
    }

    /// One segment of 20 MiB, 4 MiB of it live, 12 MiB at the peak, as PyTorch pickles it.
    static Path ofPyTorch(Path file) throws IOException {
        try (InputStream in = Objects.requireNonNull(
                SampleSnapshots.class.getResourceAsStream("/io/cistern/cli/imports/torch-one-segment.pickle"))) {
            return Files.write(file, in.readAllBytes());
        }
    }

    /// A pool in pieces whose stream has stopped, beside a training.
    static Path fragmentedPoolAtRest(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        program.in("tokens");
        List<Long> texts = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            program.on("tokenizer").after(10 * MILLISECOND);
            texts.add(program.allocate(3 * MIB, COPIES, "com.acme.io.Texts.read(Texts.java:19)"));
            program.allocate(
                    700 << 10,
                    COPIES,
                    "com.acme.io." + (i < 70 ? "Vocabulary.add(Vocabulary" : "Merges.add(Merges") + ".java:8)");
        }
        for (long address : texts) {
            program.after(MILLISECOND).free(address);
        }
        program.outsidePools();
        for (int step = 0; step < 200; step++) {
            step(program, step);
        }
        return program.write(file, "on demand");
    }

    /// A stream that copied few large blocks at first, and stopped: most of the memory is idle for it.
    static Path strandedInLargePieces(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        for (int i = 0; i < 3; i++) {
            long staged = program.on("prefetch")
                    .allocate(400 * MIB, COPIES + i, "com.acme.io.Prefetch.stage(Prefetch.java:63)");
            program.after(20 * MILLISECOND).free(staged);
        }
        for (int step = 0; step < 20; step++) {
            step(program, step);
        }
        return program.write(file, "on demand");
    }

    /// A burst that keeps what it takes at first; then few events in a long time.
    static Path burst(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        for (int i = 0; i < 1000; i++) {
            program.on("main").after(MILLISECOND).allocate(MIB, TRAINING, "com.acme.train.Model.load(Model.java:35)");
        }
        for (int step = 0; step < 40; step++) {
            program.free(program.after(500 * MILLISECOND)
                    .allocate(MIB, TRAINING, "com.acme.train.Layer.forward(Layer.java:102)"));
        }
        return program.write(file, "on demand");
    }

    /// Growth whose call stacks are not recorded, as a replay's.
    static Path growthWithoutStacks(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        for (int step = 0; step < 200; step++) {
            program.after(3 * MILLISECOND).allocate(3 * MIB, TRAINING);
        }
        return program.write(file, "on demand");
    }

    /// A service that sleeps, and leaks when work comes at last.
    static Path leakAfterAPause(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        weights(program);
        program.after(3600_000 * MILLISECOND);
        for (int i = 0; i < 100; i++) {
            program.on("indexer").after(100 * MILLISECOND).allocate(3 * MIB, TRAINING, LEAKING_SITE);
            program.free(program.allocate(MIB, TRAINING, STEP, MAIN));
        }
        return program.write(file, "on demand");
    }

    /// Nothing for ten seconds, so much in one second that it needs more than the pixels of a chart, then nothing
    /// for twenty.
    static Path betweenPauses(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        program.annotate("begin").after(10_000 * MILLISECOND);
        for (int i = 0; i < 10_000; i++) {
            long block = program.after(MILLISECOND / 20).allocate(40 * MIB, TRAINING, STEP, MAIN);
            program.after(MILLISECOND / 20).free(block);
        }
        return program.after(20_000 * MILLISECOND).write(file, "on demand");
    }

    /// The events of the first half are lost.
    static Path lostEvents(Path file) throws IOException {
        SampleProgram program = new SampleProgram(24L << 30, 64 * MIB);
        weights(program);
        for (int step = 0; step < 40; step++) {
            step(program, step);
            if (step == 19) {
                program.loseEvents();
            }
        }
        return program.write(file, "on demand");
    }

    /// A training on a full device.
    static Path outOfMemory(Path file) throws IOException {
        SampleProgram program = new SampleProgram(4L << 30, 64 * MIB);
        weights(program);
        for (int step = 0; step < 60; step++) {
            step(program, step);
            program.allocate(32 * MIB, TRAINING, "com.acme.train.Checkpoint.keep(Checkpoint.java:70)", STEP, MAIN);
        }
        program.refuse(512 * MIB, TRAINING);
        return program.write(file, "out of memory");
    }

    /// The same training, which frees the checkpoints after the refusal.
    static Path freedAfterTheRefusal(Path file) throws IOException {
        SampleProgram program = new SampleProgram(4L << 30, 64 * MIB);
        weights(program);
        List<Long> checkpoints = new ArrayList<>();
        for (int step = 0; step < 60; step++) {
            checkpoints.add(program.allocate(32 * MIB, TRAINING, "com.acme.train.Checkpoint.keep(Checkpoint.java:70)"));
        }
        program.refuse(512 * MIB, TRAINING).after(MILLISECOND);
        checkpoints.forEach(program::free);
        return program.write(file, "on demand");
    }

    /// Many events of several threads and streams.
    static Path large(Path file, int events) throws IOException {
        Random random = new Random(20260101);
        SampleProgram program = new SampleProgram(80L << 30, 256 * MIB);
        ArrayDeque<Long> live = new ArrayDeque<>();
        while (program.eventCount() < events) {
            int worker = random.nextInt(6);
            program.on("worker-" + worker).after(100_000 + random.nextInt(500_000));
            int phase = program.eventCount() * 9 / events;
            if (live.size() < 60 + 60 * (phase % 3) || random.nextInt(5) == 0) {
                live.add(program.allocate(
                        (1L + random.nextInt(40)) << (10 + random.nextInt(10)),
                        TRAINING + 0x100L * (worker % 3),
                        "com.acme.jobs.Job" + random.nextInt(12) + ".run(Job.java:" + (20 + worker) + ")",
                        "com.acme.jobs.Worker.loop(Worker.java:9)"));
            } else {
                long address = live.remove();
                switch (random.nextInt(400)) {
                    case 0 -> program.freeDeferred(address);
                    case 1 -> program.freeToCache(address);
                    default -> program.free(address);
                }
            }
            if (program.eventCount() % (events / 8) == 0) {
                program.annotate("phase " + program.eventCount() * 8 / events);
            }
        }
        return program.write(file, "peak of a replay");
    }

    private static void weights(SampleProgram program) {
        for (int layer = 0; layer < 12; layer++) {
            program.on("main").after(4 * MILLISECOND);
            program.allocate(24 * MIB, TRAINING, "com.acme.train.Model.load(Model.java:35)", MAIN);
        }
    }

    private static void step(SampleProgram program, int step) {
        if (step % 50 == 0) {
            program.on("main").annotate("step " + step);
        }
        ArrayDeque<Long> activations = new ArrayDeque<>();
        for (int layer = 0; layer < 12; layer++) {
            program.on("main").after(4 * MILLISECOND);
            activations.push(program.allocate(
                    (8L + layer) * MIB + 300, TRAINING, "com.acme.train.Layer.forward(Layer.java:102)", STEP, MAIN));
        }
        while (!activations.isEmpty()) {
            program.after(4 * MILLISECOND).free(activations.pop());
        }
    }
}
