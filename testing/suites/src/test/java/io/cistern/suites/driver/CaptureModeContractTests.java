package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/// Which calls a capture forbids to which threads, and how a thread makes them nevertheless.
abstract class CaptureModeContractTests extends GraphFixture {
    CaptureModeContractTests(DriverContract suite) {
        super(suite);
    }

    private void assertNoMemory() {
        assertFails(
                () -> driver.memory().allocate(DEVICE, MIB),
                DriverCall.MEM_ALLOC,
                CudaResult.STREAM_CAPTURE_UNSUPPORTED);
    }

    private void takeMemory() {
        driver.memory().free(DEVICE, driver.memory().allocate(DEVICE, MIB));
    }

    private void assertGoesOn(long stream) {
        assertThat(graphs.captureStatus(DEVICE, stream)).isEqualTo(CaptureStatus.ACTIVE);
        graphOf(stream);
    }

    @Test
    void theThreadThatCapturesGetsNoMemoryPastTheCapture() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        assertNoMemory();
        assertFails(
                () -> graphs.endCapture(DEVICE, stream),
                DriverCall.STREAM_END_CAPTURE,
                CudaResult.STREAM_CAPTURE_INVALIDATED);
        takeMemory();
    }

    @Test
    void noGraphIsInstantiatedBesideACapture() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long graph = graphOf(stream);
        begin(stream, CaptureMode.THREAD_LOCAL);
        assertFails(
                () -> graphs.instantiate(DEVICE, graph, false),
                DriverCall.GRAPH_INSTANTIATE,
                CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        abandon(stream);
    }

    @Test
    void aGlobalCaptureForbidsAllThreadsAllocationsOnOtherStreams() {
        long other = stream();
        long stream = captured(CaptureMode.GLOBAL);
        inAnotherThread(() -> assertFails(
                () -> driver.pools().allocate(DEVICE, MIB, other),
                DriverCall.MEM_ALLOC_ASYNC,
                CudaResult.STREAM_CAPTURE_UNSUPPORTED));
        abandon(stream);
    }

    @Test
    void underShelterTheyAllocate() {
        long other = stream();
        graphs.shelter(DEVICE);
        long stream = captured(CaptureMode.GLOBAL);
        try {
            inAnotherThread(() -> driver.pools().free(DEVICE, driver.pools().allocate(DEVICE, MIB, other), other));
            assertGoesOn(stream);
        } finally {
            graphs.unshelter(DEVICE);
        }
    }

    @Test
    void inRelaxedModeItDoes() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        graphs.relaxed(this::takeMemory);
        assertGoesOn(stream);
    }

    @Test
    void aRelaxedCaptureForbidsNothing() {
        long stream = captured(CaptureMode.RELAXED);
        takeMemory();
        assertGoesOn(stream);
    }

    @Test
    void aGlobalCaptureForbidsItToAllThreads() {
        long stream = captured(CaptureMode.GLOBAL);
        inAnotherThread(this::assertNoMemory);
        abandon(stream);
    }

    @Test
    void aGlobalCaptureForbidsAllThreadsToAskEvents() {
        long other = stream();
        long event = eventOn(other);
        long stream = captured(CaptureMode.GLOBAL);
        inAnotherThread(() -> assertFails(
                () -> driver.events().hasPassed(DEVICE, event),
                DriverCall.EVENT_QUERY,
                CudaResult.STREAM_CAPTURE_UNSUPPORTED));
        abandon(stream);
    }

    @Test
    void aCaptureOfAThreadLeavesOthersAlone() {
        long other = stream();
        long event = eventOn(other);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        inAnotherThread(() -> {
            takeMemory();
            assertThat(driver.events().hasPassed(DEVICE, event)).isIn(true, false);
        });
        assertGoesOn(stream);
    }

    @Test
    void theModeIsTheThreads() {
        assertThat(graphs.exchangeThreadMode(CaptureMode.THREAD_LOCAL)).isEqualTo(CaptureMode.GLOBAL);
        inAnotherThread(
                () -> assertThat(graphs.exchangeThreadMode(CaptureMode.RELAXED)).isEqualTo(CaptureMode.GLOBAL));
        assertThat(graphs.exchangeThreadMode(CaptureMode.GLOBAL)).isEqualTo(CaptureMode.THREAD_LOCAL);
    }

    @Test
    void shelteredCallsGetOnWithCapturesOfAllThreads() {
        long other = stream();
        long event = eventOn(other);
        graphs.shelter(DEVICE);
        long stream = captured(CaptureMode.GLOBAL);
        try {
            takeMemory();
            inAnotherThread(() -> {
                takeMemory();
                driver.events().synchronize(DEVICE, event);
                assertThat(driver.events().hasPassed(DEVICE, event)).isTrue();
                synchronize(other);
            });
            assertGoesOn(stream);
        } finally {
            graphs.unshelter(DEVICE);
        }
    }

    @Test
    void pagesAreMappedUnderShelter() {
        graphs.shelter(DEVICE);
        long stream = captured(CaptureMode.GLOBAL);
        try {
            inAnotherThread(this::mapPage);
            mapPage();
            assertGoesOn(stream);
        } finally {
            graphs.unshelter(DEVICE);
        }
    }

    private void mapPage() {
        PhysicalMemory physical = PhysicalMemory.onDevice(DEVICE);
        long bytes = driver.virtualMemory().granularity(physical, false);
        long address = driver.virtualMemory().reserve(DEVICE, bytes, 0, 0);
        long handle = driver.virtualMemory().create(bytes, physical);
        driver.virtualMemory().map(DEVICE, address, bytes, handle);
        driver.virtualMemory()
                .setAccess(DEVICE, address, bytes, MemoryLocation.device(DEVICE), AccessRights.READ_WRITE);
        driver.virtualMemory().unmap(DEVICE, address, bytes);
        driver.virtualMemory().release(DEVICE, handle);
        driver.virtualMemory().freeReservation(DEVICE, address, bytes);
    }

    @Test
    void whatWouldInvalidateCapturesIsNotCalledUnderShelter() {
        graphs.shelter(DEVICE);
        long stream = captured(CaptureMode.RELAXED);
        long event = event();
        try {
            assertFails(
                    () -> driver.devices().synchronize(DEVICE),
                    DriverCall.CONTEXT_SYNCHRONIZE,
                    CudaResult.STREAM_CAPTURE_UNSUPPORTED);
            assertFails(
                    () -> driver.events().recordAll(DEVICE, event),
                    DriverCall.CONTEXT_RECORD_EVENT,
                    CudaResult.STREAM_CAPTURE_UNSUPPORTED);
            assertGoesOn(stream);
        } finally {
            graphs.unshelter(DEVICE);
        }
    }

    @Test
    void aCaptureIsEndedByItsThread() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        inAnotherThread(() -> assertFails(
                () -> graphs.endCapture(DEVICE, stream),
                DriverCall.STREAM_END_CAPTURE,
                CudaResult.STREAM_CAPTURE_WRONG_THREAD));
        abandon(stream);
    }

    @Test
    void aRelaxedCaptureIsEndedByAnyThread() {
        long stream = captured(CaptureMode.RELAXED);
        inAnotherThread(() -> assertThat(graphOf(stream)).isNotZero());
    }

    @Test
    void aShelterWaitsForACallThatMustNotMeetACapture() throws InterruptedException {
        CountDownLatch called = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        Thread calling = Thread.ofPlatform()
                .start(() -> graphs.unlessSheltered(DEVICE, () -> {
                    called.countDown();
                    awaitQuietly(goOn);
                    return true;
                }));
        called.await();
        Thread sheltering = Thread.ofPlatform().start(() -> graphs.shelter(DEVICE));
        sheltering.join(50);
        assertThat(sheltering.isAlive()).isTrue();
        goOn.countDown();
        sheltering.join();
        calling.join();
        try {
            assertThat(graphs.unlessSheltered(DEVICE, () -> true)).isFalse();
        } finally {
            graphs.unshelter(DEVICE);
        }
        assertThat(graphs.unlessSheltered(DEVICE, () -> true)).isTrue();
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
