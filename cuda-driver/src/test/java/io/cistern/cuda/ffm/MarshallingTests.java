package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Events;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Modules;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.RangeAttributes;
import io.cistern.cuda.Streams;
import io.cistern.cuda.UnifiedMemory;
import io.cistern.cuda.VirtualMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/// Every method of every facet: what arrives in C, and what comes back. Numbers have bits above the 32nd.
final class MarshallingTests extends OverFakeLibrary {
    private static final long SIZE = 0x1_2345_6789L;

    @Test
    void devices() {
        assertThat(driver.devices().count()).isEqualTo(2);
        assertThat(driver.devices().name(1)).isEqualTo("Fake 1");
        assertThat(driver.devices().uuid(0)).isEqualTo("00102030-4050-6070-8090-a0b0c0d0e0f0");
        assertThat(driver.devices().totalBytes(1)).isEqualTo(0x2000000001L);
        assertThat(driver.devices().attribute(1, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR))
                .isEqualTo(9);
        assertThat(driver.devices().primaryContext(1)).isEqualTo(0xc1);
        driver.devices().synchronize(1);
        assertCalls(
                "cuDeviceGetName(256, 1)",
                "cuDeviceGetUuid_v2(0)",
                "cuDeviceTotalMem_v2(1)",
                "cuDeviceGetAttribute(75, 1)",
                "cuCtxSynchronize()");
    }

    @Test
    void anAttributeThatTheDriverDoesNotKnowIsZero() {
        library.fail("cuDeviceGetAttribute", 1);
        assertThat(driver.devices().attribute(0, DeviceAttribute.MULTICAST_SUPPORTED))
                .isZero();
    }

    @Test
    void linearMemory() {
        LinearMemory memory = driver.memory();
        assertThat(memory.allocate(1, SIZE)).isEqualTo(0xc1);
        memory.free(0, ADDRESS);
        memory.free(0, 0);
        assertThat(memory.info(0)).isEqualTo(new LinearMemory.MemoryInfo(0x100000001L, 0x200000002L));
        assertThat(memory.freeBytes(0)).isEqualTo(0x100000001L);
        assertThat(memory.range(0, ADDRESS + 5))
                .isEqualTo(new LinearMemory.AddressRange(0x7f1234567000L, 0x300000003L));
        assertCalls(
                "cuMemAlloc_v2(123456789)",
                "cuMemFree_v2(7f1234567800)",
                "cuMemGetInfo_v2()",
                "cuMemGetInfo_v2()",
                "cuMemGetAddressRange_v2(7f1234567805)");
    }

    @Test
    void hostMemory() {
        LinearMemory memory = driver.memory();
        MemorySegment pinned = memory.allocateHost(0, 0x123);
        assertThat(pinned.byteSize()).isEqualTo(0x123);
        pinned.set(ValueLayout.JAVA_BYTE, 0x122, (byte) 1);
        memory.freeHost(0, pinned);
        assertCalls("cuMemHostAlloc(123, 3)", "cuMemHostGetDevicePointer_v2(0)", "cuMemFreeHost()");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment own = arena.allocate(0x40);
            memory.registerHost(0, own);
            memory.unregisterHost(0, own);
            assertCalls(
                    "cuMemHostRegister_v2(0x%x, 40, 3)".formatted(own.address()),
                    "cuMemHostUnregister(0x%x)".formatted(own.address()));
        }
    }

    @Test
    void pinnedMemoryWithAnotherDeviceAddressIsFreedAndRefused() {
        library.fail("cuMemHostGetDevicePointer_v2", 1);
        assertThatThrownBy(() -> driver.memory().allocateHost(0, 8)).isInstanceOf(CudaException.class);
        assertCalls("cuMemHostAlloc(8, 3)", "cuMemHostGetDevicePointer_v2(0)", "cuMemFreeHost()");
    }

    @Test
    void managedMemoryAndPlacesByValue() {
        UnifiedMemory managed = driver.unifiedMemory();
        assertThat(managed.allocate(1, SIZE)).isEqualTo(0xe00000000L);
        managed.prefetch(1, ADDRESS, SIZE, MemoryLocation.device(1), STREAM);
        managed.prefetch(1, ADDRESS, SIZE, MemoryLocation.hostNuma(3), STREAM);
        managed.advise(0, ADDRESS, SIZE, MemoryAdvice.SET_ACCESSED_BY, MemoryLocation.host());
        assertCalls(
                "cuMemAllocManaged(123456789, 1)",
                "cuMemPrefetchAsync_v2(7f1234567800, 123456789, 1 1, 0, 500000007)",
                "cuMemPrefetchAsync_v2(7f1234567800, 123456789, 3 3, 0, 500000007)",
                "cuMemAdvise_v2(7f1234567800, 123456789, 5, 2 0)");
    }

    @Test
    void adviceIsReadBackAndContentsAreDiscarded() {
        UnifiedMemory managed = driver.unifiedMemory();
        assertThat(managed.attributes(1, ADDRESS, SIZE))
                .isEqualTo(new RangeAttributes(
                        true,
                        Optional.of(MemoryLocation.hostNuma(6)),
                        List.of(MemoryLocation.host(), MemoryLocation.device(3)),
                        Optional.empty()));
        managed.discard(1, ADDRESS, SIZE, STREAM);
        assertCalls(
                "cuMemRangeGetAttribute(4, 1, 7f1234567800, 123456789)",
                "cuMemRangeGetAttribute(4, 5, 7f1234567800, 123456789)",
                "cuMemRangeGetAttribute(4, 6, 7f1234567800, 123456789)",
                "cuMemRangeGetAttribute(80, 3, 7f1234567800, 123456789)",
                "cuMemRangeGetAttribute(4, 7, 7f1234567800, 123456789)",
                "cuMemRangeGetAttribute(4, 8, 7f1234567800, 123456789)",
                "cuMemDiscardBatchAsync(7f1234567800 * 123456789, 1, 0, 500000007)");
    }

    @Test
    void pointerAttributesOfAllWidths() {
        LinearMemory memory = driver.memory();
        assertThat(memory.attribute(0, PointerAttribute.RANGE_SIZE, ADDRESS)).isEqualTo(0x70000000cL);
        assertThat(memory.attribute(0, PointerAttribute.DEVICE_ORDINAL, ADDRESS))
                .isEqualTo(-2);
        assertThat(memory.attribute(0, PointerAttribute.IS_MANAGED, ADDRESS)).isEqualTo(1);
        assertCalls(
                "cuPointerGetAttribute(12, 7f1234567800)",
                "cuPointerGetAttribute(9, 7f1234567800)",
                "cuPointerGetAttribute(8, 7f1234567800)");
    }

    @Test
    void allocationFromPools() {
        MemoryPools pools = driver.pools();
        assertThat(pools.allocate(1, SIZE, STREAM)).isEqualTo(0xa00000000L);
        assertThat(pools.allocateFrom(1, POOL, SIZE, STREAM)).isEqualTo(0xb00000000L);
        pools.free(1, ADDRESS, STREAM);
        assertCalls(
                "cuMemAllocAsync(123456789, 500000007)",
                "cuMemAllocFromPoolAsync(123456789, d00000005, 500000007)",
                "cuMemFreeAsync(7f1234567800, 500000007)");
    }

    @Test
    void poolsThemselves() {
        MemoryPools pools = driver.pools();
        assertThat(pools.create(new MemoryPoolProperties(MemoryLocation.device(1), 9, SIZE, true, false)))
                .isEqualTo(0xd00000000L);
        pools.destroy(0, POOL);
        pools.trimTo(0, POOL, SIZE);
        assertThat(pools.defaultPool(1)).isEqualTo(0xd00000001L);
        assertThat(pools.currentPool(1)).isEqualTo(0xd00000002L);
        pools.setCurrentPool(1, POOL);
        pools.setAccess(0, POOL, 1, AccessRights.READ);
        assertThat(pools.access(0, POOL, 1)).isEqualTo(AccessRights.READ_WRITE);
        assertCalls(
                "cuMemPoolCreate(" + "01000000" + "09000000" + "0100000001000000" + "00".repeat(8) + "8967452301000000"
                        + "0200" + "00".repeat(54) + ")",
                "cuMemPoolDestroy(d00000005)",
                "cuMemPoolTrimTo(d00000005, 123456789)",
                "cuDeviceGetDefaultMemPool(1)",
                "cuDeviceGetMemPool(1)",
                "cuDeviceSetMemPool(1, d00000005)",
                "cuMemPoolSetAccess(d00000005, 010000000100000001000000, 1)",
                "cuMemPoolGetAccess(d00000005, 0100000001000000)");
    }

    @Test
    void poolAttributesOfBothWidths() {
        MemoryPools pools = driver.pools();
        pools.setAttribute(0, POOL, PoolAttribute.RELEASE_THRESHOLD, -1);
        pools.setAttribute(0, POOL, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC, 1);
        assertThat(pools.attribute(0, POOL, PoolAttribute.RESERVED_HIGH)).isEqualTo(0x500000006L);
        assertThat(pools.attribute(0, POOL, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC))
                .isEqualTo(1);
        assertCalls(
                "cuMemPoolSetAttribute(d00000005, 4, long ffffffffffffffff)",
                "cuMemPoolSetAttribute(d00000005, 2, int 1)",
                "cuMemPoolGetAttribute(d00000005, 6)",
                "cuMemPoolGetAttribute(d00000005, 2)");
    }

    @Test
    void virtualMemory() {
        VirtualMemory virtual = driver.virtualMemory();
        PhysicalMemory memory = new PhysicalMemory(MemoryLocation.hostNuma(5), 8, true, 1);
        String properties = "01000000" + "08000000" + "0300000005000000" + "00".repeat(8) + "0001000000000000";
        assertThat(virtual.granularity(memory, true)).isEqualTo(2L << 20);
        assertThat(virtual.create(SIZE, memory)).isEqualTo(0xf00000000L);
        assertThat(virtual.reserve(0, SIZE, 0x200000000L, ADDRESS)).isEqualTo(0xe00000000L);
        virtual.map(0, ADDRESS, SIZE, 0xf00000000L);
        virtual.setAccess(0, ADDRESS, SIZE, MemoryLocation.device(1), AccessRights.READ_WRITE);
        virtual.setAccess(
                0, ADDRESS, SIZE, List.of(MemoryLocation.device(0), MemoryLocation.device(1)), AccessRights.READ_WRITE);
        assertThat(virtual.access(0, ADDRESS, MemoryLocation.device(1))).isEqualTo(AccessRights.READ);
        assertThat(virtual.retainHandle(0, ADDRESS)).isEqualTo(0xf00000001L);
        virtual.unmap(0, ADDRESS, SIZE);
        virtual.release(0, 0xf00000000L);
        virtual.freeReservation(0, ADDRESS, SIZE);
        assertCalls(
                "cuMemGetAllocationGranularity(" + properties + ", 1)",
                "cuMemCreate(123456789, " + properties + ", 0)",
                "cuMemAddressReserve(123456789, 200000000, 7f1234567800, 0)",
                "cuMemMap(7f1234567800, 123456789, 0, f00000000, 0)",
                "cuMemSetAccess(7f1234567800, 123456789, 010000000100000003000000, 1)",
                "cuMemSetAccess(7f1234567800, 123456789," + " 010000000000000003000000010000000100000003000000, 2)",
                "cuMemGetAccess(0100000001000000, 7f1234567800)",
                "cuMemRetainAllocationHandle(7f1234567800)",
                "cuMemUnmap(7f1234567800, 123456789)",
                "cuMemRelease(f00000000)",
                "cuMemAddressFree(7f1234567800, 123456789)");
    }

    @Test
    void copiesAndFills() {
        Copies copies = driver.copies();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(64);
            copies.toDevice(0, ADDRESS, host, 64, STREAM);
            copies.toHost(0, host, ADDRESS, 32, STREAM);
            assertCalls(
                    "cuMemcpyHtoDAsync_v2(7f1234567800, 0x%x, 40, 500000007)".formatted(host.address()),
                    "cuMemcpyDtoHAsync_v2(0x%x, 7f1234567800, 20, 500000007)".formatted(host.address()));
        }
        MemorySegment array = MemorySegment.ofArray(new byte[] {0, 1, 2, 3, 4});
        copies.arrayToDevice(0, ADDRESS, array.asSlice(1, 3), STREAM);
        copies.arrayToDevice(0, ADDRESS, array.asSlice(0, 0), STREAM);
        assertCalls("cuMemcpyHtoDAsync_v2(7f1234567800, bytes 010203, 500000007)");
        copies.onDevice(0, ADDRESS, ADDRESS + 16, SIZE, STREAM);
        copies.betweenDevices(0, ADDRESS, 1, ADDRESS + 16, SIZE, STREAM);
        copies.rows(0, ADDRESS, 100, ADDRESS + 16, 200, 64, 9, STREAM);
        copies.fillBytes(0, ADDRESS, (byte) -2, SIZE, STREAM);
        copies.fillShorts(0, ADDRESS, (short) -2, SIZE, STREAM);
        copies.fillWords(0, ADDRESS, -2, SIZE, STREAM);
        assertCalls(
                "cuMemcpyDtoDAsync_v2(7f1234567800, 7f1234567810, 123456789, 500000007)",
                "cuMemcpyPeerAsync(7f1234567800, c0, 7f1234567810, c1, 123456789, 500000007)",
                "cuMemcpy2DAsync_v2(4 7f1234567800 +64, 4 7f1234567810 +c8, 40 * 9, 500000007)",
                "cuMemsetD8Async(7f1234567800, fe, 123456789, 500000007)",
                "cuMemsetD16Async(7f1234567800, fffe, 123456789, 500000007)",
                "cuMemsetD32Async(7f1234567800, fffffffe, 123456789, 500000007)");
    }

    @Test
    void batchesOfCopies() {
        List<Copies.Piece> pieces = List.of(
                new Copies.Piece(ADDRESS, ADDRESS + 16, SIZE),
                new Copies.Piece(1, 2, 3),
                new Copies.Piece(ADDRESS + 32, ADDRESS + 48, 8));
        assertThat(driver.copies().takesBatches()).isTrue();
        driver.copies().batch(1, pieces, STREAM);
        assertCalls(
                "cuMemcpyBatchAsync_v2(7f1234567800 <- 7f1234567810 * 123456789, 7f1234567820 <- 7f1234567830 * 8, 3,"
                        + " 01000000" + "00".repeat(20) + " from 0, 1, 500000007)");
    }

    @Test
    void copiesAndFillsOfNothingAreNotPassedOn() {
        Copies copies = driver.copies();
        copies.toDevice(0, 0, MemorySegment.NULL, 0, STREAM);
        copies.onDevice(0, 0, 0, 0, STREAM);
        copies.betweenDevices(0, 0, 1, 0, 0, STREAM);
        copies.rows(0, 0, 1, 0, 1, 1, 0, STREAM);
        copies.rows(0, 0, 1, 0, 1, 0, 1, STREAM);
        copies.fillBytes(0, 0, (byte) 1, 0, STREAM);
        copies.fillShorts(0, 0, (short) 1, 0, STREAM);
        copies.fillWords(0, 0, 1, 0, STREAM);
        assertCalls();
    }

    @Test
    void hostMemoryThatTheGpuCannotReachIsRefusedBeforeTheCall() {
        Copies copies = driver.copies();
        assertThatThrownBy(() -> copies.toDevice(0, ADDRESS, MemorySegment.ofArray(new byte[8]), 8, STREAM))
                .isInstanceOf(IllegalArgumentException.class);
        MemorySegment closed;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment shorter = closed = arena.allocate(4);
            assertThatThrownBy(() -> copies.toHost(0, shorter, ADDRESS, 8, STREAM))
                    .isInstanceOf(IllegalArgumentException.class);
        }
        assertThatThrownBy(() -> copies.toHost(0, closed, ADDRESS, 4, STREAM))
                .isInstanceOf(IllegalStateException.class);
        assertCalls();
    }

    @Test
    void streams() {
        Streams streams = driver.streams();
        assertThat(streams.create(0)).isEqualTo(0x5001);
        assertThat(streams.create(0, false, -5)).isEqualTo(0x5002);
        streams.destroy(0, STREAM);
        streams.synchronize(0, STREAM);
        assertThat(streams.isIdle(0, STREAM)).isTrue();
        assertThat(streams.isBlocking(0, STREAM)).isFalse();
        streams.await(0, STREAM, EVENT);
        assertThat(streams.id(0, STREAM)).isEqualTo(0x600000006L);
        assertCalls(
                "cuStreamCreate(1)",
                "cuStreamCreateWithPriority(0, -5)",
                "cuStreamDestroy_v2(500000007)",
                "cuStreamSynchronize(500000007)",
                "cuStreamQuery(500000007)",
                "cuStreamGetFlags(500000007)",
                "cuStreamWaitEvent(500000007, 400000009, 0)",
                "cuStreamGetId(500000007)");
    }

    @Test
    void events() {
        Events events = driver.events();
        assertThat(events.create(0)).isEqualTo(0x4001);
        assertThat(events.createTimed(0)).isEqualTo(0x4001);
        events.record(0, EVENT, STREAM);
        assertThat(events.hasPassed(0, EVENT)).isTrue();
        events.synchronize(0, EVENT);
        assertThat(events.elapsedMillis(0, EVENT, EVENT + 1)).isEqualTo(1.5f);
        events.destroy(0, EVENT);
        assertCalls(
                "cuEventCreate(2)",
                "cuEventCreate(0)",
                "cuEventRecord(400000009, 500000007)",
                "cuEventQuery(400000009)",
                "cuEventSynchronize(400000009)",
                "cuEventElapsedTime(400000009, 40000000a)",
                "cuEventDestroy_v2(400000009)");
    }

    @Test
    void notReadyIsAnAnswer() {
        library.fail("cuStreamQuery", 600);
        assertThat(driver.streams().isIdle(0, STREAM)).isFalse();
        library.fail("cuEventQuery", 600);
        assertThat(driver.events().hasPassed(0, EVENT)).isFalse();
    }

    @Test
    void hostFunctionsRunAndWhatTheyThrowIsSwallowed() throws InterruptedException {
        CountDownLatch ran = new CountDownLatch(2);
        driver.streams().launchHostFunction(0, STREAM, () -> {
            ran.countDown();
            throw new IllegalStateException("thrown by the test");
        });
        driver.streams().launchHostFunction(0, STREAM, ran::countDown);
        ran.await();
        assertCalls(
                "cuStreamGetCaptureInfo_v3(500000007)",
                "cuLaunchHostFunc(500000007)",
                "cuStreamGetCaptureInfo_v3(500000007)",
                "cuLaunchHostFunc(500000007)");
        assertThat(HostFunctions.waiting()).isZero();
    }

    @Test
    void aHostFunctionThatTheDriverRefusesIsNotKept() {
        library.fail("cuLaunchHostFunc", 400);
        assertThatThrownBy(() -> driver.streams().launchHostFunction(0, STREAM, () -> {}))
                .isInstanceOf(CudaException.class);
        assertThat(HostFunctions.waiting()).isZero();
    }

    @Test
    void modulesAndLaunches() {
        Modules modules = driver.modules();
        assertThat(modules.load(0, "text of a module")).isEqualTo(0x3001);
        assertThat(modules.function(0, 0x3001, "name")).isEqualTo(0x3002);
        modules.launch(
                0,
                0x3_0000_0002L,
                new Modules.Grid(Modules.Extent.of(7, 3), new Modules.Extent(256, 2, 1), 1024),
                STREAM,
                SIZE,
                -2,
                0.5f,
                0.25,
                (short) -3,
                (byte) -4);
        modules.unload(0, 0x3001);
        assertCalls(
                "cuModuleLoadData(text of a module)",
                "cuModuleGetFunction(3001, name)",
                "cuLaunchKernel(300000002, 7 3 1, 256 2 1, 1024, 500000007,"
                        + " 123456789 fffffffe 0.50 0.25 fffd fc, (nil))",
                "cuModuleUnload(3001)");
    }

    @Test
    void aKernelMayTakeMoreArgumentsThanAFrameHolds() {
        Object[] arguments = new Object[Frame.MAX_ARGUMENTS + 1];
        Arrays.fill(arguments, (byte) -4);
        arguments[0] = SIZE;
        arguments[1] = -2;
        arguments[2] = 0.5f;
        arguments[3] = 0.25;
        arguments[4] = (short) -3;
        driver.modules().launch(0, 1, Modules.Grid.of(1, 1), STREAM, arguments);
        assertCalls("cuLaunchKernel(1, 1 1 1, 1 1 1, 0, 500000007, 123456789 fffffffe 0.50 0.25 fffd fc, (nil))");
    }

    @Test
    void aKernelTakesNoObjects() {
        assertThatThrownBy(() -> driver.modules().launch(0, 1, Modules.Grid.of(1, 1), STREAM, "text"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("java.lang.String");
        assertCalls();
    }

    @Test
    void peers() {
        assertThat(driver.peers().canAccess(0, 1)).isTrue();
        assertThat(driver.peers().canAccess(1, 1)).isFalse();
        driver.peers().enable(0, 1);
        driver.peers().disable(0, 1);
        assertCalls(
                "cuDeviceCanAccessPeer(0, 1)",
                "cuDeviceCanAccessPeer(1, 1)",
                "cuCtxEnablePeerAccess(c1, 0)",
                "cuCtxDisablePeerAccess(c1)");
    }

    @Test
    void aFailureTellsCallResultCodeAndArguments() {
        library.fail("cuMemAllocAsync", 2);
        assertThatThrownBy(() -> driver.pools().allocate(1, SIZE, STREAM))
                .hasMessage("cuMemAllocAsync(device=1, byteSize=4886718345, stream=0x500000007) failed:"
                        + " CUDA_ERROR_OUT_OF_MEMORY (2)")
                .asInstanceOf(type(CudaException.class))
                .returns(DriverCall.MEM_ALLOC_ASYNC, CudaException::call)
                .returns(CudaResult.OUT_OF_MEMORY, CudaException::result)
                .returns(2, CudaException::code);
    }

    @Test
    void callsAreCountedFailedOnesTooAndContextsAreNot() {
        long allocations = driver.calls().of(DriverCall.MEM_ALLOC);
        library.setContext(0xf0);
        driver.memory().allocate(0, 1);
        library.fail("cuMemAlloc_v2", 2);
        assertThatThrownBy(() -> driver.memory().allocate(0, 1)).isInstanceOf(CudaException.class);
        assertThat(driver.calls().of(DriverCall.MEM_ALLOC)).isEqualTo(allocations + 2);
        assertThat(driver.calls().of(DriverCall.CONTEXT_SET_CURRENT)).isZero();
        assertThat(driver.calls().of(DriverCall.CONTEXT_GET_CURRENT)).isZero();
    }
}
