package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What the framework asks of all allocators together, and tells them.
class WholeMemoryTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private final List<String> log = new ArrayList<>();

    /// Holds idle memory on each device and gives it back as asked.
    private class Holder implements DeviceAllocator {
        final String name;
        OptionalLong reserved;

        Holder(String name, OptionalLong reserved) {
            this.name = name;
            this.reserved = reserved;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return 1 << 20;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public OptionalLong reservedBytes(int device) {
            return reserved;
        }

        @Override
        public long trim(int device, long keepBytes) {
            log.add(name + " keeps " + keepBytes + " on " + device);
            long returned = Math.max(0, reserved.orElse(7) - keepBytes);
            reserved = reserved.isEmpty() ? reserved : OptionalLong.of(reserved.getAsLong() - returned);
            return returned;
        }

        @Override
        public void streamWaits(int device, long stream, long awaited) {
            log.add(name + " told of a wait on " + device);
        }
    }

    /// One that has all abilities.
    private final class Able extends Holder implements MemoryReclaim, MemoryStatistics {
        Able(String name) {
            super(name, OptionalLong.of(100));
        }

        @Override
        public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
            return Optional.of(new TrimResult(trim(device, keepBytes), OptionalLong.of(reserved.orElse(0)), List.of()));
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            throw new DeviceOutOfMemoryException(byteSize, device, "it is full");
        }

        @Override
        public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
            log.add(name + " asked");
            return OptionalLong.empty();
        }

        @Override
        public void failed(DeviceOutOfMemoryException refusal) {
            log.add(name + " told of a failure");
        }

        @Override
        public Optional<CompactionResult> compact(int device, long byteSize) {
            return Optional.of(CompactionResult.nothing(name + " on " + device));
        }

        @Override
        public Optional<CompactionResult> planCompaction(int device) {
            return Optional.of(CompactionResult.nothing("plan of " + name + " on " + device));
        }

        @Override
        public void resetPeaks(int device) {
            log.add("peaks on " + device);
        }

        @Override
        public void resetTotals(int device) {
            log.add("totals on " + device);
        }
    }

    private Allocator open(Holder holder) {
        return memory.open(OpenOptions.made(holder.name, holder));
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void theFirstOpenedGiveBackUntilTogetherTheyKeepEnough() {
        open(new Holder("first", OptionalLong.of(100)));
        open(new Holder("second", OptionalLong.of(50)));
        open(new Holder("third", OptionalLong.of(10)));
        open(new Holder("silent", OptionalLong.empty()));
        assertThat(memory.trim(1, 40, TrimMode.WITHOUT_WAITING).returnedBytes()).isEqualTo(120);
        assertThat(log)
                .containsExactly(
                        "first keeps 0 on 1",
                        "second keeps 30 on 1",
                        "third keeps 10 on 1",
                        "silent keeps " + Long.MAX_VALUE + " on 1");
    }

    @Test
    void whoCannotTellWhatItHoldsGivesBackAllOrNothing() {
        Holder silent = new Holder("silent", OptionalLong.empty());
        open(silent);
        open(new Holder("first", OptionalLong.of(100)));
        assertThat(memory.trim(0, 99, TrimMode.WITHOUT_WAITING).returnedBytes()).isEqualTo(7);
        memory.trim(0, 100, TrimMode.WITHOUT_WAITING);
        assertThat(log)
                .as("7 unknown bytes lower the excess of 1")
                .containsExactly(
                        "silent keeps 0 on 0",
                        "first keeps 100 on 0",
                        "silent keeps " + Long.MAX_VALUE + " on 0",
                        "first keeps 100 on 0");
        assertThatIllegalArgumentException().isThrownBy(() -> memory.trim(0, -1, TrimMode.WITHOUT_WAITING));
    }

    @Test
    void aTrimWaitsForTheDeviceIfAskedTo() {
        open(new Holder("first", OptionalLong.of(100)));
        long stream = gpu.streams().create(1);
        gpu.keepBusy(1, stream, 1_000_000_000_000L);
        memory.trim(1, 0, TrimMode.WITHOUT_WAITING);
        assertThat(gpu.streams().isIdle(1, stream)).isFalse();
        memory.trim(1, 0, TrimMode.SYNCHRONIZE);
        assertThat(gpu.streams().isIdle(1, stream)).isTrue();
    }

    /// The driver refuses to wait while a stream is captured. A trim then gives back what is idle already.
    @Test
    void aTrimDoesWithoutTheWaitThatACaptureForbids() {
        open(new Holder("first", OptionalLong.of(100)));
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 1, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        assertThat(memory.trim(1, 0, TrimMode.SYNCHRONIZE).returnedBytes()).isEqualTo(100);
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 1, CudaResult.UNKNOWN);
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> memory.trim(1, 0, TrimMode.SYNCHRONIZE));
        assertThat(log).containsExactly("first keeps 0 on 1");
    }

    /// The framework trims the upstream itself, so an adaptor around it does not.
    @Test
    void anUpstreamIsTrimmedOnceAndCompactedThroughItsAdaptor() {
        Allocator upstream = open(new Able("able"));
        Allocator around = memory.open(OpenOptions.around("around", upstream, made -> new AllocatorAdaptor(made) {}));
        assertThat(around.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isZero();
        assertThat(log).isEmpty();
        assertThat(memory.trim(0, 60, TrimMode.WITHOUT_WAITING))
                .isEqualTo(new TrimResult(40, OptionalLong.of(60), List.of()));
        assertThat(log).containsExactly("able keeps 60 on 0");
        try (Registration _ = memory.listeners().onCompaction(Listeners.WorkPause.ofOneThread())) {
            assertThat(around.compact(1).obstacle()).isEqualTo("able on 1");
        }
        assertThat(around.reservedBytes(0)).hasValue(0);
    }

    @Test
    void anUpstreamIsAskedForRoomForItsAdaptorAndToldInVain() {
        Allocator upstream = open(new Able("able"));
        Allocator around = memory.open(OpenOptions.around("around", upstream, made -> new AllocatorAdaptor(made) {}));
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> around.allocate(100, 0, 0));
        assertThat(log).contains("able asked").endsWith("able told of a failure");
    }

    @Test
    void aClosedAllocatorHasNothingToCompactOrTrim() {
        Allocator able = open(new Able("able"));
        assertThat(able.compact(1).obstacle()).isEqualTo("plan of able on 1");
        able.close();
        assertThat(able.compact(1).obstacle()).isEqualTo("able is closed");
        assertThat(able.trim(1, 0, TrimMode.WITHOUT_WAITING))
                .isEqualTo(new TrimResult(0, OptionalLong.of(0), List.of()));
        assertThat(log).isEmpty();
    }

    @Test
    void aResetReachesTheFiguresOfThePluginUntilItIsClosed() {
        Allocator able = open(new Able("able"));
        able.resetPeaks(1);
        able.resetTotals(0);
        assertThat(log).containsExactly("peaks on 1", "totals on 0");
        able.close();
        able.resetPeaks(1);
        able.resetTotals(0);
        assertThat(log).hasSize(2);
    }

    @Test
    void eachAllocatorIsToldThatAStreamWaitsForAnother() {
        open(new Holder("first", OptionalLong.of(100)));
        open(new Holder("second", OptionalLong.of(100)));
        try (CudaStream waiting = CudaStream.open(memory, 1);
                CudaStream awaited = CudaStream.open(memory, 1);
                CudaStream elsewhere = CudaStream.open(memory, 0)) {
            waiting.await(awaited);
            waiting.await(elsewhere);
        }
        assertThat(log).containsExactly("first told of a wait on 1", "second told of a wait on 1");
    }
}
