package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import io.cistern.cuda.CaptureMode;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.graph.GraphCapture;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DeviceMemoryTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();
    private final ArrayAllocatorProvider array = new ArrayAllocatorProvider("array");
    private final Catalog catalog = Catalog.of(
            List.of(new DirectProvider(), array), List.of(new DriverSource.Linear(), new DriverSource.Pages()));
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(catalog).open();
    private final long stream = gpu.streams().create(0);

    @AfterEach
    void leavesNothingBehind() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aTrimThatMayWaitDoesNotWaitBesideACapture() {
        memory.setCurrent("direct");
        try (GraphCapture _ = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            assertThat(memory.trim(0, 0, TrimMode.SYNCHRONIZE).returnedBytes()).isZero();
        }
    }

    @Test
    void theCatalogueChoosesTheFirstCurrentAllocator() {
        assertThat(memory.allocators()).isEmpty();
        memory.free(memory.allocate(100, 0, stream), stream);
        assertThat(memory.current(0).name()).isEqualTo("direct");
    }

    @Test
    void blocksGoBackToTheirAllocatorWhateverIsCurrent() {
        long before = gpu.memory().freeBytes(0);
        Allocator first = memory.setCurrent("direct");
        long fromFirst = memory.allocate(1 << 20, 0, stream);
        Allocator second = memory.setCurrent("array");
        long fromSecond = memory.allocate(1 << 20, 0, stream);

        memory.free(fromFirst, stream);
        memory.free(fromSecond, stream);

        assertThat(first.statistics(0).frees()).isEqualTo(1);
        assertThat(second.statistics(0).frees()).isEqualTo(1);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(before);
    }

    @Test
    void anAllocatorServesEachDeviceAndCountsItApart() {
        Allocator allocator = memory.setCurrent("direct");
        long onFirst = memory.allocate(1000, 0, stream);
        long onSecond = memory.allocate(3000, 1, 0);
        assertThat(allocator.statistics(0).requestedBytes()).isEqualTo(1000);
        assertThat(allocator.statistics(1).requestedBytes()).isEqualTo(3000);
        memory.free(onFirst, stream);
        memory.free(onSecond, 0);
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> memory.allocate(1, 2, 0));
    }

    @Test
    void unknownReservedBytesAreAbsent() {
        assertThat(memory.setCurrent("direct").statistics(0).reservedBytes()).isEmpty();
    }

    @Test
    void aClosedAllocatorKeepsItsBlocksAndClosesWithTheLast() {
        Allocator allocator = memory.setCurrent("array");
        long block = memory.allocate(100, 0, stream);
        allocator.close();

        assertThatIllegalStateException().isThrownBy(() -> memory.allocate(100, 0, stream));
        assertThat(allocator.isDrained()).isFalse();
        assertThat(array.log).containsExactly("array opened");
        memory.free(block, stream);

        assertThat(allocator.isDrained()).isTrue();
        assertThat(array.log).containsExactly("array opened", "array closed");
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void anAllocatorIsKnownByOneObjectUntilItIsGone() {
        List<Allocator> seen = new ArrayList<>();
        array.whileClosing = () -> {
            seen.addAll(memory.allocators());
            seen.addAll(memory.allocators());
        };
        MemoryPool pool = memory.pools().open("array");
        pool.close();
        assertThat(seen).containsExactly(pool, pool);
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void afterTheEndNothingIsOpened() {
        Allocator former = memory.setCurrent("array");
        memory.close();
        List<ThrowingCallable> attempts = List.of(
                () -> memory.open("array"),
                () -> memory.open(OpenOptions.made("mine", mock(DeviceAllocator.class))),
                () -> memory.setCurrent("array"),
                () -> memory.pools().open("array"));
        assertThat(attempts)
                .allSatisfy(attempt -> assertThatIllegalStateException()
                        .isThrownBy(attempt)
                        .withMessageContaining("this DeviceMemory is closed"));
        assertThatIllegalStateException().isThrownBy(() -> memory.allocate(100, 0, stream));
        assertThat(former.isDrained()).isTrue();
        assertThat(array.log).containsExactly("array opened", "array closed");
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void afterTheEndNoneBecomesCurrentThatWasNot() {
        memory.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> memory.allocate(100, 0, stream))
                .withMessageContaining("this DeviceMemory is closed");
    }

    @Test
    void whatIsOpenedWhileTheMemoryIsClosedIsClosedToo() {
        array.whileOpening = memory::close;
        assertThatIllegalStateException().isThrownBy(() -> memory.open("array"));
        assertThat(array.log).containsExactly("array opened", "array closed");
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void anOptionThatNobodyAskedForIsRefusedAndThePlugInClosed() {
        assertThatExceptionOfType(ConfigurationException.class)
                .isThrownBy(() -> memory.open("array:lound=true"))
                .withMessageContaining("lound")
                .withMessageContaining("loud");
        assertThat(array.log).containsExactly("array opened", "array closed");
        assertThat(memory.allocators()).isEmpty();
    }

    /// Whose fault it is: an exception of a plug-in reaches the program as it is, and often says nothing of that.
    @Test
    void whatAPluginThrowsTellsWhichItWas() {
        IllegalStateException always = new IllegalStateException("no licence");
        array.failure = always;

        for (int i = 0; i < 3; i++) {
            assertThatThrownBy(() -> memory.open("array:loud=true")).isSameAs(always);
        }
        assertThat(always.getSuppressed())
                .singleElement()
                .satisfies(note -> assertThat(note).hasMessage("while array:loud=true was opened"));
        assertThat(array.log).isEmpty();
    }

    @Test
    void aConfiguredAllocatorWhosePluginThrowsIsAWrongConfiguration() {
        array.failure = new IllegalStateException("no licence");
        Catalog arrayAlone = Catalog.of(List.of(array), List.of(new DriverSource.Linear()));
        try (DeviceMemory configured =
                DeviceMemory.builder(gpu).catalog(arrayAlone).open()) {
            assertThatExceptionOfType(ConfigurationException.class)
                    .isThrownBy(() -> configured.allocate(100, 0, stream))
                    .withMessageEndingWith(": array can't be opened: java.lang.IllegalStateException: no licence")
                    .withCause(array.failure);
        }
    }

    @Test
    void whatAnAllocatorThrowsTellsWhichItWas() {
        array.failureOfAllocate = new IllegalStateException("lost");
        memory.setCurrent("array:loud=true");

        assertThatThrownBy(() -> memory.allocate(1000, 1, 0))
                .isSameAs(array.failureOfAllocate)
                .satisfies(thrown -> assertThat(thrown.getSuppressed())
                        .singleElement()
                        .satisfies(note -> assertThat(note)
                                .hasMessage("allocator array:loud=true was asked for 1000 bytes on device 1")));
    }

    @Test
    void aTrimToLessThanNothingIsRefused() {
        Allocator allocator = memory.open("array");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> allocator.trim(0, -1, TrimMode.WITHOUT_WAITING))
                .withMessage("keepBytes is negative: -1");
    }

    @Test
    void aChoiceThatFailsLeavesTheCurrentAllocator() {
        Allocator current = memory.setCurrent("array");
        assertThatExceptionOfType(ConfigurationException.class).isThrownBy(() -> memory.setCurrent("nosuch"));
        assertThat(memory.current(0)).isSameAs(current);
    }

    @Test
    void anAllocatorOfOtherDeviceMemoryCanNotBecomeCurrent() {
        try (DeviceMemory other = DeviceMemory.builder(gpu).catalog(catalog).open()) {
            Allocator foreign = other.open("direct");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> memory.currents().set(foreign));
        }
    }

    @Test
    void theEndOfAStreamIsToldToEveryAllocator() {
        memory.open("array");
        memory.streamClosing(1, 77);
        assertThat(array.log).contains("array told of stream 77 on device 1");
    }

    @Test
    void aClosedAllocatorDoesNotBecomeCurrentAlsoWhileItsBlocksLive() {
        Allocator present = memory.setCurrent("direct");
        Allocator closed = memory.open("array");
        long block = closed.allocate(100, 0, stream);
        closed.close();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> memory.currents().set(closed))
                .withMessageContaining("array is closed");
        assertThatIllegalArgumentException().isThrownBy(() -> memory.currents().compareAndSet(0, present, closed));
        assertThat(memory.current(0)).isSameAs(present);
        memory.free(block, stream);
    }

    @Test
    void outOfMemoryTellsTheCallersBytesAndTheDevice() {
        memory.setCurrent("direct");
        long block = memory.allocate(1 << 20, 1, 0);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> memory.allocate(1L << 30, 1, 0))
                .withMessageContaining("1073741824 bytes (1.00 GiB) requested")
                .withMessageContaining("device 1")
                .withMessageContaining(") free of 1")
                .satisfies(failure -> assertThat(failure.device()).isEqualTo(1));
        memory.free(block, 0);
        memory.free(memory.allocate(1 << 20, 1, 0), 0);
    }

    @Test
    void aLimitSpansTheAllocatorsOfADevice() {
        try (DeviceMemory limited =
                DeviceMemory.builder(gpu).catalog(catalog).limitBytes(1000).open()) {
            Allocator first = limited.open("direct");
            Allocator second = limited.open("array");
            long block = first.allocate(600, 0, stream);
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> second.allocate(401, 0, stream))
                    .withMessageContaining("limit of 1000 bytes, 600 of them in use");
            limited.free(second.allocate(400, 0, stream), stream);
            limited.free(second.allocate(1000, 1, 0), 0);
            limited.free(block, stream);
        }
    }

    @Test
    void withoutACatalogueAProgramBringsItsOwnAllocators() {
        try (DeviceMemory bare = DeviceMemory.builder(gpu).open()) {
            assertThatExceptionOfType(ConfigurationException.class).isThrownBy(() -> bare.allocate(1, 0, stream));
        }
    }

    @Test
    void whatIsReservedHoldsOffTheEndOfTheAllocator() {
        List<String> log = new ArrayList<>();
        AtomicReference<Allocator> opened = new AtomicReference<>();
        opened.set(memory.open(OpenOptions.made("closed meanwhile", new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long onStream) {
                opened.get().close();
                log.add("allocate");
                return 256;
            }

            @Override
            public void free(long address, long byteSize, int device, long onStream) {
                log.add("free");
            }

            @Override
            public void close() {
                log.add("close");
            }
        })));
        opened.get().opened().reserve(1, 0, stream);
        assertThat(log).containsExactly("allocate", "free", "close");
        assertThatIllegalStateException().isThrownBy(() -> opened.get().opened().reserve(1, 0, stream));
    }

    @Test
    void theAllocatorThatMadeABlockIsKnown() {
        Allocator direct = memory.setCurrent("direct");
        Allocator other = memory.open("array");
        MemoryPool pool = memory.pools().open("direct");
        long fromCurrent = memory.allocate(100, 0, stream);
        long fromOther = other.allocate(100, 0, stream);
        long fromPool = pool.allocate(100, 0, stream);
        assertThat(memory.ownerOf(fromCurrent)).isSameAs(direct);
        assertThat(memory.ownerOf(fromOther)).isSameAs(other);
        assertThat(memory.ownerOf(fromPool)).hasToString(pool.toString());
        assertThat(memory.ownerOf(fromPool)).isSameAs(pool);
        assertThat(direct).isNotInstanceOf(MemoryPool.class);
        assertThat(direct.memory()).isSameAs(memory);
        memory.free(fromOther, stream);
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> memory.ownerOf(fromOther));
        memory.free(fromCurrent, stream);
        memory.free(fromPool, stream);
        pool.close();
    }

    @Test
    void theStatisticsOfADeviceAreTheSumOverAllocatorsAndPools() {
        memory.setCurrent("direct");
        MemoryPool pool = memory.pools().open("direct");
        long kept = memory.allocate(1000, 0, stream);
        memory.free(memory.allocate(5000, 0, stream), stream);
        long pooled = pool.allocate(300, 0, stream);
        AllocatorStatistics sum = memory.statistics(0);
        assertThat(sum.allocations()).isEqualTo(3);
        assertThat(sum.frees()).isOne();
        assertThat(sum.liveBlocks()).isEqualTo(2);
        assertThat(sum.requestedBytes()).isEqualTo(1300);
        assertThat(sum.requestedPeakBytes()).isEqualTo(6000);
        assertThat(sum.requestedTotalBytes()).isEqualTo(6300);
        assertThat(memory.statistics(1).allocations()).isZero();
        assertThat(memory.memorySummary(0))
                .contains("direct, device 0", pool + ", device 0", "all allocators, device 0");
        assertThat(pool.memorySummary(0)).contains(pool.toString());
        assertThat(pool.memoryStatistics(0)).containsEntry("requested_bytes.all.current", 300L);
        assertThat(pool.liveBlocks())
                .singleElement()
                .satisfies(leak -> assertThat(leak.byteSize()).isEqualTo(300));
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> memory.statistics(2));
        memory.free(kept, stream);
        memory.free(pooled, stream);
        pool.close();
    }

    @Test
    void streamsOfOneHandleAreEqual() {
        CudaStream one = CudaStream.ofForeign(memory, 0, stream);
        assertThat(one)
                .isEqualTo(CudaStream.ofForeign(memory, 0, stream))
                .hasSameHashCodeAs(CudaStream.ofForeign(memory, 0, stream))
                .isNotEqualTo(CudaStream.ofForeign(memory, 1, stream))
                .isNotEqualTo(CudaStream.ofForeign(memory, 0, stream + 1));
        try (DeviceMemory other = DeviceMemory.builder(gpu).catalog(catalog).open()) {
            assertThat(one).isNotEqualTo(CudaStream.ofForeign(other, 0, stream));
        }
    }
}
