package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.MemoryPool;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.DriverCall;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Each driver call of going to sleep and of waking fails, early and late, once and for good: contents are there in
/// the end, and nothing is lost or counted wrongly.
final class SleepFailuresTests extends PoolFixture {
    /// More than one batch of pages.
    private static final long BYTES = 70 * MIB;

    SleepFailuresTests() {
        super(256 * MIB);
    }

    private MemoryPool pool(String options) {
        return builder().spec("caching:page_size=2MiB" + options).open();
    }

    /// Each MiB has another byte, so half a page that is in another's place shows.
    private long filled(MemoryPool pool) {
        long block = pool.allocate(BYTES, DEVICE, stream);
        for (int i = 0; i < BYTES / MIB; i++) {
            gpu.copies().fillBytes(DEVICE, block + i * MIB, (byte) (i + 1), MIB, stream);
        }
        gpu.streams().synchronize(DEVICE, stream);
        return block;
    }

    private void assertIntact(long block) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(BYTES);
            gpu.copies().toHost(DEVICE, host, block, BYTES, stream);
            gpu.streams().synchronize(DEVICE, stream);
            for (int i = 0; i < BYTES / MIB; i++) {
                MemorySegment part = host.asSlice(i * MIB, MIB);
                assertThat(part.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) (i + 1));
                assertThat(part.asSlice(1).mismatch(part.asSlice(0, MIB - 1))).isEqualTo(-1);
            }
        }
    }

    private void assertBooksAreRight(MemoryPool pool) {
        pool.extension(CachingAllocator.class).orElseThrow().checkInvariants();
        var info = gpu.memory().info(DEVICE);
        assertThat(pool.reservedBytes(DEVICE)).hasValue(info.totalBytes() - info.freeBytes());
    }

    @Test
    void anEventThatTheDriverKeepsCostsNoOtherEvent() {
        try (MemoryPool pool = pool("")) {
            long block = filled(pool);
            gpu.faults().failOn(DriverCall.EVENT_DESTROY, 0, DeadContext.MOST_TRIES, CudaResult.UNKNOWN);
            pool.sleep(SleepMode.KEEP);
            assertThat(gpu.faults().failedCalls()).isEqualTo(DeadContext.MOST_TRIES);
            keptEvents = 1;
            assertThat(gpu.heldObjects()).containsEntry("events", keptEvents);
            pool.wake();
            assertIntact(block);
            memory.free(block, stream);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"STREAM_DESTROY", "EVENT_DESTROY"})
    void aRefusalToDestroyWhatTheCopiesNeededLeavesNone(DriverCall call) {
        try (MemoryPool pool = pool("")) {
            long block = filled(pool);
            Map<String, Long> before = gpu.heldObjects();
            gpu.faults().failOn(call, 0, 1, CudaResult.UNKNOWN);
            pool.sleep(SleepMode.KEEP);
            pool.wake();
            assertThat(gpu.faults().failedCalls()).isOne();
            assertThat(gpu.heldObjects())
                    .containsEntry("streams", before.get("streams"))
                    .doesNotContainKey("events");
            assertIntact(block);
            memory.free(block, stream);
        }
    }

    @ParameterizedTest(name = "{0} after {1}, then {2} times")
    @CsvSource({
        "MEM_CREATE, 0, 1",
        "MEM_CREATE, 33, 1",
        "MEM_CREATE, 0, 1000",
        "MEM_MAP, 0, 1",
        "MEM_MAP, 33, 1000",
        "MEM_SET_ACCESS, 0, 1",
        "MEM_SET_ACCESS, 1, 1000",
        "STREAM_CREATE, 0, 1",
        "MEMCPY_HTOD_ASYNC, 0, 1",
        "MEMCPY_HTOD_ASYNC, 1, 1000",
        "STREAM_SYNCHRONIZE, 0, 1",
        "STREAM_SYNCHRONIZE, 0, 1000"
    })
    void aWakeThatFailsSleepsOn(DriverCall call, int after, int times) {
        try (MemoryPool pool = pool("")) {
            long block = filled(pool);
            pool.sleep(SleepMode.KEEP);
            gpu.faults().failOn(call, after, times, CudaResult.UNKNOWN);
            assertThatThrownBy(pool::wake).isInstanceOf(CudaException.class);
            gpu.faults().clear();
            assertThat(pool.isAsleep()).isTrue();
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
            assertBooksAreRight(pool);
            pool.wake();
            assertBooksAreRight(pool);
            assertIntact(block);
            memory.free(block, stream);
        }
    }

    @ParameterizedTest(name = "{0} fails in the roll-back of a wake")
    @ValueSource(strings = {"MEM_UNMAP", "MEM_RELEASE"})
    void whatARollBackCanNotTakeBackIsFoundByTheNextWake(DriverCall call) {
        try (MemoryPool pool = pool("")) {
            long block = filled(pool);
            pool.sleep(SleepMode.KEEP);
            gpu.faults().failOn(DriverCall.MEMCPY_HTOD_ASYNC, 1, 1000, CudaResult.UNKNOWN);
            gpu.faults().failOn(call, 10, 7, CudaResult.UNKNOWN);
            assertThatThrownBy(pool::wake).isInstanceOf(CudaException.class);
            gpu.faults().clear();
            assertThat(pool.isAsleep()).isTrue();
            assertBooksAreRight(pool);
            pool.wake();
            pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING); // which tries again what was not released
            assertBooksAreRight(pool);
            assertIntact(block);
            memory.free(block, stream);
        }
    }

    @ParameterizedTest(name = "{0} fails in the roll-back of a wake")
    @ValueSource(strings = {"MEM_UNMAP", "MEM_RELEASE"})
    void whatARollBackCanNotTakeBackGoesWithThePool(DriverCall call) {
        MemoryPool pool = pool("");
        long block = filled(pool);
        pool.sleep(SleepMode.KEEP);
        gpu.faults().failOn(DriverCall.MEMCPY_HTOD_ASYNC, 1, 1000, CudaResult.UNKNOWN);
        gpu.faults().failOn(call, 10, 7, CudaResult.UNKNOWN);
        assertThatThrownBy(pool::wake).isInstanceOf(CudaException.class);
        gpu.faults().clear();
        memory.free(block, stream);
        pool.close();
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(256 * MIB);
    }

    @ParameterizedTest(name = "{0} after {1}, then {2} times")
    @CsvSource({
        "CONTEXT_SYNCHRONIZE, 0, 1",
        "MEM_HOST_ALLOC, 0, 1",
        "MEM_HOST_ALLOC, 1, 1000",
        "STREAM_CREATE, 0, 1",
        "EVENT_CREATE, 0, 1",
        "EVENT_RECORD, 0, 1",
        "EVENT_RECORD, 1, 1000",
        "EVENT_SYNCHRONIZE, 0, 1",
        "EVENT_SYNCHRONIZE, 1, 1000",
        "MEMCPY_DTOH_ASYNC, 0, 1",
        "MEMCPY_DTOH_ASYNC, 1, 1000",
        "MEM_UNMAP, 0, 1",
        "MEM_UNMAP, 33, 1000"
    })
    void aSleepThatFailsIsAwake(DriverCall call, int after, int times) {
        try (MemoryPool pool = pool("")) {
            long block = filled(pool);
            PinnedMemory.of(memory).trim();
            gpu.faults().failOn(call, after, times, CudaResult.UNKNOWN);
            assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP)).isInstanceOf(CudaException.class);
            gpu.faults().clear();
            assertThat(pool.isAsleep()).isFalse();
            assertBooksAreRight(pool);
            assertIntact(block);
            memory.free(pool.allocate(MIB, DEVICE, stream), stream);
            pool.sleep(SleepMode.KEEP);
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
            pool.wake();
            assertIntact(block);
            memory.free(block, stream);
            assertThat(PinnedMemory.of(memory).statistics()).containsEntry("active_bytes.current", 0L);
        }
    }

    @Test
    void aSleepThatFailsAndCanNotBeTakenBackSleepsAndLosesNothing() {
        try (MemoryPool pool = pool("")) {
            long block = filled(pool);
            gpu.faults().failOn(DriverCall.MEM_UNMAP, 33, 1000, CudaResult.UNKNOWN);
            gpu.faults().failOn(DriverCall.MEM_CREATE, 10, 1000, CudaResult.OUT_OF_MEMORY);
            assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP)).isInstanceOf(CudaException.class);
            gpu.faults().clear();
            assertThat(pool.isAsleep()).isTrue();
            assertBooksAreRight(pool);
            pool.sleep(SleepMode.KEEP); // what was left
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
            pool.wake();
            assertBooksAreRight(pool);
            assertIntact(block);
            memory.free(block, stream);
        }
    }

    @Test
    void theCapOfThePoolHoldsForWhatWakes() {
        try (MemoryPool pool = pool(",per_process_memory_fraction=0.7")) {
            long block = filled(pool);
            for (int i = 0; i < 3; i++) {
                pool.sleep(SleepMode.KEEP);
                pool.wake();
            }
            assertIntact(block);
            memory.free(block, stream);
        }
    }

    @Test
    void aPoolWhoseContextDiedInItsSleepCanBeClosed() {
        MemoryPool pool = pool("");
        long block = filled(pool);
        pool.sleep(SleepMode.KEEP);
        gpu.faults().failOn(DriverCall.STREAM_CREATE, 0, 1000, CudaResult.ILLEGAL_ADDRESS);
        assertThatThrownBy(pool::wake).isInstanceOf(CudaException.class);
        memory.free(block, stream);
        pool.close();
        assertThat(pool.isDrained()).isTrue();
        gpu.faults().clear();
    }
}
