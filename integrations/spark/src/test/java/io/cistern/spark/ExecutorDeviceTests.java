package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import java.util.List;
import java.util.Map;
import org.apache.spark.resource.ResourceInformation;
import org.junit.jupiter.api.Test;

/// An executor has the device that Spark gave it.
final class ExecutorDeviceTests {
    private final CudaDriver driver = SimulatedGpu.builder().devices(3).build();

    @Test
    void withoutAnAddressItIsTheFirst() {
        assertThat(ExecutorDevice.of(List.of(), driver)).isZero();
        assertThat(ExecutorDevice.addresses(Map.of())).isEmpty();
    }

    @Test
    void anAddressIsAnOrdinalOrAnId() {
        String uuid = driver.capabilities().devices().get(2).uuid();
        assertThat(ExecutorDevice.of(List.of("1"), driver)).isEqualTo(1);
        assertThat(ExecutorDevice.of(List.of(uuid), driver)).isEqualTo(2);
        assertThat(ExecutorDevice.of(List.of("GPU-" + uuid), driver)).isEqualTo(2);
    }

    @Test
    void aDeviceThatIsNotThereIsRefused() {
        assertThatThrownBy(() -> ExecutorDevice.of(List.of("3"), driver))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("Spark assigned this executor the GPU '3', but its process sees [0 (");
    }

    @Test
    void severalDevicesAreRefusedWithTheCure() {
        ResourceInformation two = new ResourceInformation("gpu", new String[] {"0", "1"});
        List<String> addresses = ExecutorDevice.addresses(Map.of("gpu", two));
        assertThatThrownBy(() -> ExecutorDevice.of(addresses, driver))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("spark.executor.resource.gpu.amount to 1");
    }

    @Test
    void aSimulatedGpuHasAsManyDevicesAsTheAddressNeeds() {
        assertThat(ExecutorDevice.simulatedDevices(List.of("5"))).containsEntry("cistern.simulated.devices", "6");
        assertThat(ExecutorDevice.simulatedDevices(List.of())).containsEntry("cistern.simulated.devices", "1");
    }
}
