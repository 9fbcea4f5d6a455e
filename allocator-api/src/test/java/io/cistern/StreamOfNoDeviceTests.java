package io.cistern;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.simulated.SimulatedGpu;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/// Streams and events of a device that does not exist.
class StreamOfNoDeviceTests {
    @Test
    void theErrorSaysWhichDevicesThereAre() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            List<ThrowingCallable> calls = List.of(
                    () -> CudaStream.open(memory, 7),
                    () -> CudaStream.open(memory, 7, 0),
                    () -> CudaEvent.open(memory, 7),
                    () -> CudaEvent.openTimed(memory, 7));
            for (ThrowingCallable call : calls) {
                assertThatExceptionOfType(IndexOutOfBoundsException.class)
                        .isThrownBy(call)
                        .withMessage("there is no device 7: the driver has only device 0");
            }
        }
    }
}
