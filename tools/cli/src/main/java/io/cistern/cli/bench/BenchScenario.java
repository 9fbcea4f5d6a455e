package io.cistern.cli.bench;

import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// The values of `--scenario`: kinds of load, and the cases of each.
public enum BenchScenario {
    /// One thread allocates and frees a block repeatedly; a case for each size.
    PAIR,
    /// One thread keeps 64 blocks alive and repeatedly replaces one by a block of another size.
    MIXED,
    /// Several threads make pairs at once, each on its own stream or all on one stream.
    THREADS,
    /// One thread allocates blocks, another thread frees them.
    HANDOFF,
    /// Pairs and exchanges while ever more blocks stay alive.
    SCALE;

    private static final long MIXED_MAX_BYTES = 1 << 20;
    private static final int MIXED_LIVE_BLOCKS = 64;
    private static final long THREADS_MAX_BYTES = 4 << 10;
    /// A million blocks, on average half as large, fit on any GPU of 8 GiB.
    private static final long SCALE_MAX_BYTES = 4 << 10;

    /// Returns the cases for a machine with so many processors.
    List<BenchCase> cases(int processors) {
        return switch (this) {
            case PAIR ->
                LongStream.of(512, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20)
                        .mapToObj(mostBytes -> new BenchCase(this, BenchCase.Variant.PAIR, 1, mostBytes, 0))
                        .toList();
            case MIXED ->
                List.of(new BenchCase(this, BenchCase.Variant.EXCHANGE, 1, MIXED_MAX_BYTES, MIXED_LIVE_BLOCKS));
            case THREADS ->
                IntStream.of(1, 2, 4, 8, 16)
                        .filter(threads -> threads <= processors)
                        .boxed()
                        .flatMap(this::ownAndShared)
                        .toList();
            case HANDOFF -> List.of(new BenchCase(this, BenchCase.Variant.HANDOFF, 2, THREADS_MAX_BYTES, 0));
            case SCALE ->
                IntStream.of(1_000, 10_000, 100_000, 1_000_000)
                        .boxed()
                        .flatMap(this::cachedAndExchanged)
                        .toList();
        };
    }

    private Stream<BenchCase> ownAndShared(int threads) {
        BenchCase own = new BenchCase(this, BenchCase.Variant.OWN_STREAMS, threads, THREADS_MAX_BYTES, 0);
        BenchCase shared = new BenchCase(this, BenchCase.Variant.ONE_STREAM, threads, THREADS_MAX_BYTES, 0);
        return threads == 1 ? Stream.of(own) : Stream.of(own, shared);
    }

    private Stream<BenchCase> cachedAndExchanged(int liveBlocks) {
        return Stream.of(BenchCase.Variant.PAIR, BenchCase.Variant.EXCHANGE)
                .map(variant -> new BenchCase(this, variant, 1, SCALE_MAX_BYTES, liveBlocks));
    }

    /// Returns the name on the command line.
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    @Override
    public String toString() {
        return label();
    }
}
