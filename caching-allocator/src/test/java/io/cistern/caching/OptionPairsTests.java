package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.errors.ConfigurationException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// As [OptionGridTests] for every two options at once, Cistern's own and PyTorch's, on three streams that free
/// each other's blocks.
final class OptionPairsTests extends PoolFixture {
    private static final String[][] CHOICES = {
        {"fit=tight"},
        {"reuse=never", "reuse=adaptive"},
        {"stable_mapping=true"},
        {"page_size=2MiB", "page_size=16MiB"},
        {"splits=false"},
        {"thread_caches=false"},
        {"thread_cache_bytes=64MiB"},
        {"alignment=4096", "alignment=2MiB"},
        {"source=linear"},
        {"expandable_segments=true", "expandable_segments=false"},
        {"per_process_memory_fraction=0.1"},
    };

    /// After which sizes and streams meet as in the first one.
    private static final int CYCLES_A_PERIOD = 30;
    private static final int PERIODS = 4;
    /// Of the bytes requested: each stream has most sizes at some time, and keeps its segments.
    private static final double MAX_IN_SEGMENTS = 4;
    /// A tenth: which idle memory goes to a threshold depends on how the cycles before left it.
    private static final int SLACK = 10;
    private static final double MAX_IN_PAGES = 2.5;
    /// In MiB.
    private static final int[] SIZES = {70, 1, 24, 33, 5, 44, 12, 21, 3, 7};

    private final long[] streams = {
        stream, gpu.streams().create(DEVICE), gpu.streams().create(DEVICE)
    };

    OptionPairsTests() {
        super(8L << 30);
    }

    @Test
    void reservedMemoryStaysBoundedForEveryTwoOptions() {
        int bounded = 0;
        for (String spec : pairs()) {
            bounded += staysBounded(spec) ? 1 : 0;
        }
        assertThat(bounded).as("pairs that do not contradict each other").isGreaterThanOrEqualTo(90);
    }

    private static List<String> pairs() {
        List<String> specs = new ArrayList<>();
        for (int i = 0; i < CHOICES.length; i++) {
            for (String one : CHOICES[i]) {
                specs.add("caching:" + one);
                for (int j = i + 1; j < CHOICES.length; j++) {
                    for (String other : CHOICES[j]) {
                        specs.add("caching:" + one + ',' + other);
                    }
                }
            }
        }
        return specs;
    }

    /// Returns false for two that contradict each other.
    private boolean staysBounded(String spec) {
        Allocator opened;
        try {
            opened = memory.open(spec);
        } catch (ConfigurationException contradiction) {
            assertThat(contradiction).as(spec).hasMessageContaining("contradicts");
            return false;
        }
        try (Allocator caching = opened) {
            long first = Math.max(period(caching, 0), period(caching, 1));
            long requested = caching.statistics(DEVICE).requestedPeakBytes();
            double most = ofWholeSegments(spec) ? MAX_IN_SEGMENTS : MAX_IN_PAGES;
            assertThat(first).as(spec).isLessThanOrEqualTo((long) (most * requested));
            for (int i = 2; i < PERIODS; i++) {
                assertThat(period(caching, i)).as(spec).isLessThanOrEqualTo(first + first / SLACK);
            }
        }
        return true;
    }

    private static boolean ofWholeSegments(String spec) {
        return spec.contains("splits=false")
                || spec.contains("source=linear")
                || spec.contains("expandable_segments=false");
    }

    private long period(Allocator caching, int number) {
        long peak = 0;
        for (int i = 0; i < CYCLES_A_PERIOD; i++) {
            cycle(caching, number * CYCLES_A_PERIOD + i);
            peak = Math.max(peak, caching.reservedBytes(DEVICE).orElseThrow());
        }
        return peak;
    }

    private void cycle(Allocator caching, int cycle) {
        long[] live = new long[SIZES.length];
        for (int i = 0; i < SIZES.length; i++) {
            live[i] = caching.allocate(SIZES[(i + cycle) % SIZES.length] * MIB - 300, DEVICE, streamOf(i + cycle));
            if (i % 3 == 2) {
                memory.free(live[i / 3], streamOf(i / 3 + cycle));
            }
        }
        for (int i = SIZES.length / 3; i < SIZES.length; i++) {
            memory.free(live[i], streamOf(i + cycle + (i % 5 == 0 ? 1 : 0)));
        }
    }

    private long streamOf(int turn) {
        return streams[turn % streams.length];
    }
}
