package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Streams;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/// Frees that the driver refused, and when they are tried again.
final class FailedFreesTests {
    private static final int DEVICE = 0;
    private static final long BYTES = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final FailedFrees frees = new FailedFrees(gpu.pools(), gpu.graphs(), DEVICE);
    private final long stream = gpu.streams().create(DEVICE);
    private final long other = gpu.streams().create(DEVICE);

    @AfterEach
    void nothingWasMisused() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private long allocate() {
        return gpu.pools().allocate(DEVICE, BYTES, stream);
    }

    private void assertLive(int blocks) {
        gpu.devices().synchronize(DEVICE);
        assertThat(gpu.pools().attribute(DEVICE, gpu.pools().currentPool(DEVICE), PoolAttribute.USED_CURRENT))
                .isEqualTo(blocks * BYTES);
    }

    private void refuse(int times, CudaResult result) {
        gpu.faults().failOn(DriverCall.MEM_FREE_ASYNC, 0, times, result);
    }

    @Test
    void aFreeIsMadeAtOnceIfItCanBe() {
        frees.free(allocate(), stream);
        assertLive(0);
        assertThat(frees.latest()).isZero();
    }

    @Test
    void aRefusedFreeIsTriedWithTheNextCallOnItsStream() {
        long block = allocate();
        refuse(2, CudaResult.UNKNOWN);
        frees.free(block, stream);
        assertThat(frees.latest()).isEqualTo(1);
        frees.freeAgainOn(other);
        assertLive(1);
        frees.freeAgainOn(stream);
        assertThat(frees.latest()).as("refused again").isEqualTo(1);
        frees.freeAgainOn(stream);
        assertLive(0);
        assertThat(frees.latest()).isZero();
    }

    @Test
    void anAddressThatTheDriverDoesNotKnowIsNotKept() {
        long block = allocate();
        refuse(1, CudaResult.INVALID_VALUE);
        frees.free(block, stream);
        assertThat(frees.latest()).isZero();
        gpu.pools().free(DEVICE, block, stream);
    }

    @Test
    void anAddressThatBecameUnknownIsGivenUp() {
        long block = allocate();
        refuse(1, CudaResult.UNKNOWN);
        frees.free(block, stream);
        refuse(1, CudaResult.INVALID_VALUE);
        frees.freeAgainOn(stream);
        assertThat(frees.latest()).isZero();
        gpu.pools().free(DEVICE, block, stream);
    }

    @ParameterizedTest
    @EnumSource(
            value = CudaResult.class,
            mode = Mode.INCLUDE,
            names = {"UNKNOWN", "INVALID_VALUE", "LAUNCH_FAILED"})
    void aFailureElsewhereIsKeptIfAnotherTryMayHelp(CudaResult result) {
        long block = allocate();
        frees.add(block, stream, new CudaException(DriverCall.MEM_FREE_ASYNC, result.code(), ""));
        assertThat(frees.latest()).isEqualTo(result == CudaResult.UNKNOWN ? 1 : 0);
        if (result != CudaResult.UNKNOWN) {
            gpu.pools().free(DEVICE, block, stream);
        }
        frees.freeAgainOn(stream);
        assertLive(0);
    }

    @Test
    void aFreeOnACapturedStreamIsMadeAfterTheCapture() {
        long block = allocate();
        gpu.graphs().beginCapture(DEVICE, stream, CaptureMode.RELAXED);
        frees.free(block, stream);
        assertThat(frees.latest()).isEqualTo(1);
        frees.freeAgainOn(stream);
        assertThat(frees.latest()).isEqualTo(1);
        gpu.graphs().destroy(DEVICE, gpu.graphs().endCapture(DEVICE, stream));
        frees.freeAgainOn(stream);
        assertLive(0);
    }

    @Test
    void aStreamOfUnknownStateMayBeCaptured() {
        long block = allocate();
        frees.keep(block, stream);
        gpu.faults().failOn(DriverCall.STREAM_IS_CAPTURING, 0, 1, CudaResult.STREAM_CAPTURE_IMPLICIT);
        frees.freeAgainOn(stream);
        assertThat(frees.latest()).as("not tried").isEqualTo(1);
        assertLive(1);
        frees.freeAgainOn(stream);
        assertThat(frees.latest()).isZero();
        assertLive(0);
    }

    @Test
    void noFreeOfALostContextIsKept() {
        frees.keep(allocate(), stream);
        gpu.faults().loseContextOn(DriverCall.STREAM_IS_CAPTURING, 0, CudaResult.ILLEGAL_ADDRESS);
        frees.freeAgainOn(stream);
        assertThat(frees.latest()).isZero();
    }

    @Test
    void aFreeBesideCapturesIsMadeAtOnce() {
        long block = allocate();
        gpu.graphs().shelter(DEVICE);
        frees.free(block, stream);
        assertThat(frees.latest()).isZero();
        gpu.graphs().unshelter(DEVICE);
        assertLive(0);
    }

    /// A capture of its stream may have begun, and ended, by then.
    @Test
    void aRefusalBesideCapturesIsTriedAgain() {
        long block = allocate();
        gpu.graphs().shelter(DEVICE);
        refuse(1, CudaResult.INVALID_VALUE);
        frees.free(block, stream);
        assertThat(frees.latest()).isEqualTo(1);
        gpu.graphs().unshelter(DEVICE);
        frees.freeAgainOn(stream);
        assertLive(0);
    }

    @Test
    void theEndOfAStreamIsTheLastTryOnIt() {
        long[] blocks = {allocate(), allocate(), allocate()};
        refuse(3, CudaResult.UNKNOWN);
        for (long block : blocks) {
            frees.free(block, stream);
        }
        gpu.faults().failOn(DriverCall.MEM_FREE_ASYNC, 1, 1, CudaResult.UNKNOWN);
        frees.streamClosing(stream);
        assertLive(1);
        frees.freeAgainOn(stream);
        assertLive(1);
        assertThat(frees.freeAgain(frees.latest())).isTrue();
        assertLive(0);
        assertThat(frees.freeAgain(frees.latest())).isFalse();
    }

    /// On another thread its handle would mean another stream.
    @Test
    void theStreamOfAThreadIsNotNamedLater() {
        long block = allocate();
        refuse(1, CudaResult.UNKNOWN);
        frees.free(block, Streams.PER_THREAD_DEFAULT);
        frees.freeAgainOn(Streams.PER_THREAD_DEFAULT);
        assertLive(1);
        frees.freeAgain(frees.latest());
        assertLive(0);
    }

    @Test
    void aWaitForTheDeviceCoversTheFreesBeforeIt() {
        frees.keep(allocate(), stream);
        long before = frees.latest();
        frees.keep(allocate(), stream);
        assertThat(frees.latest()).isEqualTo(before + 1);
        assertThat(frees.freeAgain(before)).isTrue();
        assertLive(1);
        assertThat(frees.freeAgain(frees.latest())).isTrue();
        assertLive(0);
    }

    @Test
    void manyFreesAreKept() {
        for (int i = 0; i < 500; i++) {
            frees.keep(allocate(), i % 2 == 0 ? stream : other);
        }
        frees.freeAgainOn(stream);
        assertLive(250);
        frees.freeAgainOn(other);
        assertLive(0);
        assertThat(frees.latest()).isZero();
    }
}
