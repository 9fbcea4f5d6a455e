package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.MemoryPool;
import io.cistern.errors.AllocatorContractException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Sources whose ranges are not what was asked for: such a range goes back at once, and no block comes from it.
class LyingSourceTests extends PoolFixture {
    private static final long LENGTH = 4 * MIB;

    LyingSourceTests() {
        super(64 * MIB);
    }

    @ParameterizedTest
    @ValueSource(
            longs = {1, 255, 257, -1, -256, Long.MIN_VALUE, (1L << 49) - LENGTH + 256, 1L << 49, 1L << 57, 1L << 62})
    void anIllegalAddressGoesBack(long address) {
        List<Long> returned = new ArrayList<>();
        try (MemoryPool pool = MemoryPool.builder(memory)
                .functions((_, _) -> address, (range, _, _) -> returned.add(range))
                .open()) {
            assertThatThrownBy(() -> pool.allocate(LENGTH, DEVICE, stream))
                    .isInstanceOf(AllocatorContractException.class)
                    .hasMessageContaining("segment source pool returned 0x" + Long.toHexString(address));
            assertThat(returned).isNotEmpty().containsOnly(address);
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
        }
    }

    static Stream<Segment> others() {
        return Stream.of(
                new Segment(1 << 20, LENGTH - 1, DEVICE),
                new Segment(1 << 20, 0, DEVICE),
                new Segment(1 << 20, -LENGTH, DEVICE),
                new Segment(1 << 20, Long.MAX_VALUE, DEVICE),
                new Segment(1 << 20, LENGTH, DEVICE + 1));
    }

    @ParameterizedTest
    @MethodSource("others")
    void aRangeOfAnotherSizeOrDeviceGoesBack(Segment other) {
        List<Segment> returned = new ArrayList<>();
        RangeSource source = new RangeSource() {
            @Override
            public Segment acquire(long byteSize, long byteAlignment, int device) {
                return other;
            }

            @Override
            public void release(Segment segment) {
                returned.add(segment);
            }
        };
        try (MemoryPool pool = MemoryPool.builder(memory).source(source).open()) {
            assertThatThrownBy(() -> pool.allocate(LENGTH, DEVICE, stream))
                    .isInstanceOf(AllocatorContractException.class);
            assertThat(returned).isNotEmpty().containsOnly(other);
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
        }
    }

    @Test
    void aPoolThatFailsToOpenClosesItsSource() {
        Map<String, UnaryOperator<MemoryPool.Builder>> wrong = Map.of(
                "no such allocator", pool -> pool.spec("nosuch"),
                "a wrong option", pool -> pool.spec("caching:bad=1"),
                "more at first than the limit", pool -> pool.limitBytes(1).initialBytes(2, DEVICE, stream));
        wrong.forEach((what, options) -> {
            AtomicInteger closes = new AtomicInteger();
            RangeSource source = new RangeSource() {
                @Override
                public Segment acquire(long byteSize, long byteAlignment, int device) {
                    throw new AssertionError("no memory is needed");
                }

                @Override
                public void release(Segment segment) {
                    throw new AssertionError("there is no segment");
                }

                @Override
                public void close() {
                    closes.incrementAndGet();
                }
            };
            MemoryPool.Builder pool = options.apply(MemoryPool.builder(memory).source(source));
            assertThatThrownBy(pool::open).as(what).isInstanceOf(RuntimeException.class);
            assertThat(closes).as(what).hasValue(1);
        });
    }
}
