package io.cistern.cli.bench;

import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// What `--scenario` says: a kind of load, and the cases that it is measured in.
public enum BenchScenario {
    /// A block is allocated and freed, again and again: by the size of the block.
    PAIR,
    /// Of 64 live blocks one after another is exchanged for one of another size.
    MIXED,
    /// Pairs by several threads at once, each on a stream of its own, or all on one.
    THREADS,
    /// One thread allocates, another one frees.
    HANDOFF,
    /// Pairs and exchanges beside ever more live blocks.
    SCALE;

    private static final long MIXED_MAX_BYTES = 1 << 20;
    private static final int MIXED_LIVE_BLOCKS = 64;
    private static final long THREADS_MAX_BYTES = 4 << 10;
    /// A million of them, on average half as large, fit on any GPU of 8 GiB.
    private static final long SCALE_MAX_BYTES = 4 << 10;

    /// What is measured on a machine of so many processors.
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

    /// As the command line names it.
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    @Override
    public String toString() {
        return label();
    }
}
