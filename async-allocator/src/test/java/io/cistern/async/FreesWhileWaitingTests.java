package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.Test;

/// A wait for all work of the device says nothing of work that other threads give it meanwhile.
class FreesWhileWaitingTests {
    private static final int DEVICE = 0;
    private static final long BLOCK = 64 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final Devices devices = mock(Devices.class, withSettings().defaultAnswer(delegatesTo(gpu.devices())));
    private final StreamOrder order = mock(StreamOrder.class);
    private final long stream = gpu.streams().create(DEVICE);
    private final long other = gpu.streams().create(DEVICE);

    @Test
    void aBlockFreedWhileOthersUseItIsNotTakenForWaitedFor() {
        CudaDriver driver = mock(CudaDriver.class, withSettings().defaultAnswer(delegatesTo(gpu)));
        when(driver.devices()).thenReturn(devices);
        when(order.record(DEVICE, other)).thenReturn(1L);
        try (AsyncAllocator async = AsyncFixture.async(driver, 1, AsyncOptions.USUAL, order)) {
            long block = async.allocate(BLOCK, DEVICE, stream);
            doAnswer(_ -> {
                        gpu.devices().synchronize(DEVICE);
                        async.recordUse(block, DEVICE, other);
                        async.free(block, BLOCK, DEVICE, stream);
                        return null;
                    })
                    .doNothing()
                    .when(devices)
                    .synchronize(DEVICE);
            async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            assertThat(gpu.calls().of(DriverCall.MEM_FREE_ASYNC)).isZero();
        }
        assertThat(gpu.calls().of(DriverCall.MEM_FREE_ASYNC)).isOne();
        gpu.close();
    }
}
