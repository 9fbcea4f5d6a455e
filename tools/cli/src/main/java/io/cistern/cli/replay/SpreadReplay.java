package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A replay of several threads, devices or both. Each thread of the trace runs on its own thread, which lives
/// through all passes, with a [Replay] for each device. The replays of a device share the slots of its blocks.
final class SpreadReplay implements Walk {
    private final Trace trace;
    private final int[] devices;
    private final ReplayStreams streams;
    /// By thread, by device.
    private final List<List<Replay>> replays;
    private final RowOrder order;
    private final List<ExecutorService> threads;

    interface Factory {
        Replay replay(int device, Replay.Blocks blocks);
    }

    /// @param trace has its own slot for each block if it has several threads
    /// @param ahead how many rows a thread may be ahead of the slowest
    SpreadReplay(Trace trace, ReplayStreams streams, int ahead, Layer layer, Factory factory) {
        this.trace = trace;
        this.streams = streams;
        devices = trace.origins().devices();
        List<Replay.Blocks> blocks = Stream.generate(() -> Replay.Blocks.of(trace, layer))
                .limit(trace.origins().deviceCount())
                .toList();
        replays = IntStream.range(0, trace.origins().threadCount())
                .mapToObj(_ -> IntStream.range(0, blocks.size())
                        .mapToObj(device -> factory.replay(device, blocks.get(device)))
                        .toList())
                .toList();
        order = new RowOrder(trace, ahead);
        threads = IntStream.range(0, replays.size())
                .mapToObj(thread -> Executors.newSingleThreadExecutor(
                        Thread.ofPlatform().daemon().name("replay-" + thread).factory()))
                .toList();
    }

    @Override
    public void synchronize() {
        streams.synchronize();
    }

    @Override
    public void walk() {
        all().forEach(Replay::begin);
        order.begin();
        if (replays.size() == 1) {
            play(0);
            return;
        }
        List<Future<?>> playing = new ArrayList<>();
        for (int thread = 0; thread < replays.size(); thread++) {
            int number = thread;
            playing.add(threads.get(thread).submit(() -> play(number)));
        }
        awaitAll(playing);
    }

    private void play(int thread) {
        List<Replay> own = replays.get(thread);
        Replay[] byDevice = own.toArray(Replay[]::new);
        order.play(thread, row -> byDevice[devices[trace.streams()[row]]].play(row));
        Arrays.stream(byDevice).forEach(Replay::leave);
    }

    /// Waits for all threads, then throws the first failure.
    private static void awaitAll(List<Future<?>> playing) {
        Throwable failure = null;
        for (Future<?> thread : playing) {
            failure = first(failure, failureOf(thread));
        }
        switch (failure) {
            case null -> {}
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            default -> throw new IllegalStateException(failure);
        }
    }

    private static @Nullable Throwable failureOf(Future<?> thread) {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    thread.get();
                    return null;
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (ExecutionException e) {
                    return e.getCause();
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static @Nullable Throwable first(@Nullable Throwable one, @Nullable Throwable other) {
        return one == null || (one instanceof CancellationException && other != null) ? other : one;
    }

    @Override
    public void freeLeftovers() {
        replays.getFirst().forEach(Replay::freeLeftovers);
    }

    @Override
    public long failures() {
        return all().mapToLong(Replay::failures).sum();
    }

    @Override
    public long waits() {
        return all().mapToLong(Replay::waits).sum();
    }

    private Stream<Replay> all() {
        return replays.stream().flatMap(List::stream);
    }

    @Override
    public void close() {
        threads.forEach(ExecutorService::close);
        all().forEach(Replay::close);
    }
}
