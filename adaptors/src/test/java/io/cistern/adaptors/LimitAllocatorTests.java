package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/// The limit is exact.
final class LimitAllocatorTests extends AdaptorContract {
    @Override
    LimitAllocator over(DeviceAllocator upstream) {
        return new LimitAllocator(upstream, 250);
    }

    @Override
    long believedLive(AllocatorAdaptor adaptor) {
        return Math.min(1, ((LimitAllocator) adaptor).usedBytes(DEVICE));
    }

    @Test
    void whatFitsIsGivenAndOneByteMoreIsRefused() {
        LimitAllocator limit = over(upstream);
        limit.allocate(100, DEVICE, STREAM);
        assertThatThrownBy(() -> limit.allocate(151, DEVICE, STREAM))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("151 bytes requested; limit of 250 bytes, 100 of them in use");
        limit.allocate(150, DEVICE, STREAM);
        assertThat(limit.usedBytes(DEVICE)).isEqualTo(250);
        assertThatThrownBy(() -> limit.allocate(Long.MAX_VALUE, DEVICE, STREAM))
                .asInstanceOf(type(DeviceOutOfMemoryException.class))
                .matches(DeviceOutOfMemoryException::canNeverFit);
        assertThatThrownBy(() -> limit.allocate(250, DEVICE, STREAM))
                .asInstanceOf(type(DeviceOutOfMemoryException.class))
                .matches(full -> !full.canNeverFit(), "may be retried after a free");
    }

    @Test
    void eachDeviceHasTheLimitForItself() {
        LimitAllocator limit = over(upstream);
        limit.allocate(250, 0, STREAM);
        limit.allocate(250, 1, STREAM);
        assertThat(limit.usedBytes(0)).isEqualTo(limit.usedBytes(1)).isEqualTo(250);
    }

    @Test
    void limitsNestAndTheOuterOneRollsBackWhenTheInnerRefuses() {
        LimitAllocator inner = new LimitAllocator(upstream, 100);
        LimitAllocator outer = new LimitAllocator(inner, 1000);
        assertThatThrownBy(() -> outer.allocate(101, DEVICE, STREAM)).hasMessageContaining("limit of 100 bytes");
        assertThat(outer.usedBytes(DEVICE)).isZero();
    }

    @Test
    void manyThreadsNeverExceedIt() {
        AtomicLong live = new AtomicLong();
        AtomicLong most = new AtomicLong();
        DeviceAllocator counting = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                most.accumulateAndGet(live.addAndGet(byteSize), Math::max);
                return 256;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                live.addAndGet(-byteSize);
            }
        };
        LimitAllocator limit = new LimitAllocator(counting, 250);
        Thread[] threads = new Thread[8];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = Thread.startVirtualThread(() -> {
                for (int round = 0; round < 5000; round++) {
                    try {
                        limit.free(limit.allocate(100, DEVICE, STREAM), 100, DEVICE, STREAM);
                    } catch (DeviceOutOfMemoryException full) {
                        Thread.yield();
                    }
                }
            });
        }
        for (Thread thread : threads) {
            onOtherThread(() -> join(thread));
        }
        assertThat(limit.usedBytes(DEVICE)).isZero();
        // A block whose free is under way in the upstream is no longer the program's; there are 8 threads.
        assertThat(most.get()).isBetween(100L, 250L + 8 * 100);
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
