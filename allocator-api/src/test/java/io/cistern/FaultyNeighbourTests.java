package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// One of several allocators breaks its contract. The others are called as ever, and what it throws names it.
final class FaultyNeighbourTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(1L << 30).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private final List<String> called = new ArrayList<>();
    private final Allocator before = memory.open(OpenOptions.made("before", new Sound("before")));
    private final Faulty faulty = new Faulty();
    private final Allocator bad = memory.open(OpenOptions.made("bad", faulty));
    private final Allocator after = memory.open(OpenOptions.made("after", new Sound("after")));
    private long address = 1 << 20;

    @AfterEach
    void close() {
        faulty.thrown = null;
        memory.close();
        assertThat(memory.allocators()).isEmpty();
        gpu.close();
    }

    /// Has idle memory, and notes what is called.
    private class Sound implements DeviceAllocator {
        private final String name;

        Sound(String name) {
            this.name = name;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (byteSize > 1 << 20) {
                throw new DeviceOutOfMemoryException(byteSize, device, "");
            }
            address += 1 << 20;
            return address;
        }

        @Override
        public void free(long block, long byteSize, int device, long stream) {
            called.add(name);
        }

        @Override
        public OptionalLong reservedBytes(int device) {
            return OptionalLong.of(1 << 20);
        }

        @Override
        public long trim(int device, long keepBytes) {
            called.add(name);
            return 1 << 20;
        }

        @Override
        public void streamClosing(int device, long stream) {
            called.add(name);
        }

        @Override
        public void streamWaits(int device, long stream, long awaited) {
            called.add(name);
        }

        @Override
        public void close() {
            called.add(name);
        }
    }

    private final class Faulty extends Sound {
        private Supplier<OptionalLong> reserved = () -> OptionalLong.of(1 << 20);
        private @Nullable RuntimeException thrown;

        Faulty() {
            super("bad");
        }

        @Override
        public OptionalLong reservedBytes(int device) {
            return reserved.get();
        }

        @Override
        public void free(long block, long byteSize, int device, long stream) {
            fail();
        }

        @Override
        public long trim(int device, long keepBytes) {
            fail();
            return 0;
        }

        @Override
        public void streamClosing(int device, long stream) {
            fail();
        }

        @Override
        public void streamWaits(int device, long stream, long awaited) {
            fail();
        }

        @Override
        public void close() {
            fail();
        }

        private void fail() {
            if (thrown != null) {
                throw thrown;
            }
        }
    }

    private void assertNamed(ThrowingCallable call, String note) {
        faulty.thrown = new IllegalStateException("broken");
        called.clear();
        assertThatThrownBy(call)
                .isSameAs(faulty.thrown)
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .contains(note));
    }

    @Test
    void aFreeNamesIt() throws InterruptedException {
        assertNamed(() -> memory.free(bad.allocate(100, 0, 0), 0), "allocator bad was freeing a block on device 0");
        Thread.ofVirtual()
                .start(() -> assertNamed(
                        () -> memory.free(bad.allocate(100, 0, 0), 0), "allocator bad was freeing a block on device 0"))
                .join();
        assertThat(memory.statistics(0).liveBlocks()).isZero();
    }

    @Test
    void aBlockThatItFreedBeforeIsNotTheProgramsMistake() {
        long block = bad.allocate(100, 0, 0);
        faulty.thrown = new UnknownAddressException(block);
        assertThatThrownBy(() -> memory.free(block, 0))
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .containsExactly("allocator bad was freeing a block on device 0"));
    }

    @Test
    void allAreTrimmed() {
        assertNamed(() -> memory.trim(0, 0, TrimMode.WITHOUT_WAITING), "allocator bad was trimming device 0");
        assertThat(called).containsExactly("before", "after");
    }

    @Test
    void allAreTrimmedForALimit() {
        assertNamed(() -> memory.limits().device(0).setByteSize(0), "allocator bad was trimming device 0");
        assertThat(called).containsExactlyInAnyOrder("before", "after");
    }

    @Test
    void allHearOfStreams() {
        CudaStream stream = CudaStream.open(memory, 0);
        CudaStream other = CudaStream.open(memory, 0);
        assertNamed(
                () -> stream.await(other), "allocator bad was notified that a stream of device 0 waits for another");
        assertThat(called).containsExactly("before", "after");
        assertNamed(stream::close, "allocator bad was notified that a stream of device 0 ends");
        assertThat(called).containsExactly("before", "after");
    }

    @Test
    void allAreClosed() {
        assertNamed(memory::close, "allocator bad was closing");
        assertThat(called).containsExactly("after", "before");
    }

    @Test
    void reservedBytesThatAreNullAreUnknown() {
        faulty.reserved = () -> null;
        assertThat(bad.reservedBytes(0)).isEmpty();
        assertThat(memory.statistics(0).reservedBytes()).hasValue(2 << 20); // as far as is known
        assertThat(memory.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isEqualTo(2 << 20);
        assertThat(bad.trim(0, 0, TrimMode.WITHOUT_WAITING).reservedBytes()).isEmpty();
        memory.limits().device(0).setByteSize(0);
        assertThat(called).hasSize(4);
    }

    @Test
    void reservedBytesThatItFailsToReportAreUnknownToOthers() {
        faulty.reserved = () -> {
            throw new IllegalStateException("lost count");
        };
        assertThat(memory.statistics(0).reservedBytes()).hasValue(2 << 20); // as far as is known
        assertThat(memory.memorySummary(0)).contains("bad, device 0");
        assertThat(bad.memoryStatistics(0)).isNotEmpty();
        assertThatThrownBy(() -> bad.reservedBytes(0))
                .hasMessage("lost count")
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .containsExactly("allocator bad was asked for its reserved bytes on device 0"));
        assertThatThrownBy(() -> memory.trim(0, 0, TrimMode.WITHOUT_WAITING)).hasMessage("lost count");
        assertThat(called).containsExactly("before", "after");
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> after.allocate(2 << 20, 0, 0))
                .withMessageContaining("the device has 1073741824 bytes (1.00 GiB) free")
                .satisfies(failure ->
                        assertThat(failure.report().orElseThrow().allocators()).hasSize(3));
    }

    @Test
    void freeMemoryThatTheDriverDoesNotReportIsUnknown() {
        var unknown = OptionalLong.empty();
        var report = new OutOfMemoryReport(
                100, 0, 0, unknown, unknown, List.of(), List.of(), List.of(), List.of(), List.of());
        assertThat(report.deviceText()).isEqualTo("the device's free memory is unknown");
        assertThat(report.text()).contains("device: free memory unknown");
    }

    @Test
    void noObjectIsRefusedAtOnce() {
        assertThatNullPointerException()
                .isThrownBy(() -> OpenOptions.made("n", null))
                .withMessage("allocator n is null");
    }
}
