package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.Trace;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.OptionalLong;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// `--work check` finds blocks that overlap, and nothing where none do.
final class ContentCheckTests {
    @ParameterizedTest
    @ValueSource(longs = {256 + 4, 256 + 2, 256 + 1})
    void blocksThatOverlapInTheirLastBytesAreFound(long byteSize) {
        assertThat(mismatches(byteSize)).isPositive();
    }

    @Test
    void blocksSideBySideAreNoMismatch() {
        assertThat(mismatches(256)).isZero();
    }

    /// Two blocks 256 bytes apart, both live: the second is written after the first.
    private static long mismatches(long byteSize) {
        Trace trace = new Trace(
                "t",
                new byte[] {Trace.ALLOCATE, Trace.ALLOCATE, Trace.FREE, Trace.FREE},
                new int[] {0, 1, 0, 1},
                new long[] {byteSize, byteSize, 0, 0},
                new int[4],
                2,
                1,
                4,
                2 * byteSize,
                0,
                new Trace.Origins(new int[4], 1, new int[1], new long[] {2 * byteSize}, false));
        List<SegmentSourceProvider> sources = ServiceLoader.load(SegmentSourceProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        ReplaySession session = new ReplaySession(
                trace,
                "overlapping",
                Routing.Plan.ONE_ALLOCATOR,
                new ReplayDevice.Simulated(OptionalLong.empty()),
                Catalog.of(List.of(new OverlappingProvider()), sources),
                1,
                () -> {},
                (_, e) -> {
                    throw e;
                },
                null,
                null);
        return session.observed(Work.CHECK).mismatches();
    }

    /// Hands out an address every 256 bytes, whatever the size.
    private static final class OverlappingProvider implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "overlapping";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            RangeSource source = context.ranges("linear");
            Segment segment = source.acquire(1 << 20, 256, 0);
            return new DeviceAllocator() {
                private long next = segment.address();

                @Override
                public long allocate(long byteSize, int device, long stream) {
                    next += 256;
                    return next - 256;
                }

                @Override
                public void free(long address, long byteSize, int device, long stream) {}

                @Override
                public void close() {
                    source.release(segment);
                }
            };
        }
    }
}
