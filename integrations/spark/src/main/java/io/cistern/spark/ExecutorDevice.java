package io.cistern.spark;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.settings.Setting;
import io.cistern.errors.ConfigurationException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.apache.spark.resource.ResourceInformation;

/// Finds an executor's device: the one that Spark's resource `gpu` names by ordinal or UUID, else device 0.
final class ExecutorDevice {
    private static final String GPU = "gpu";

    private ExecutorDevice() {}

    /// Returns the GPUs that Spark assigned to an executor; empty if Spark knows of no GPUs.
    static List<String> addresses(Map<String, ResourceInformation> resources) {
        ResourceInformation gpus = resources.get(GPU);
        return gpus == null ? List.of() : Arrays.asList(gpus.addresses());
    }

    /// Returns settings that give the simulated GPU the devices that Spark assigned.
    static Map<String, String> simulatedDevices(List<String> addresses) {
        int highest = addresses.stream()
                .map(ExecutorDevice::ordinal)
                .filter(OptionalInt::isPresent)
                .mapToInt(OptionalInt::getAsInt)
                .max()
                .orElse(0);
        return Map.of(Setting.SIMULATED_DEVICES.key(), Integer.toString(highest + 1));
    }

    /// Returns the device of an executor.
    ///
    /// @throws ConfigurationException if Spark assigned several devices, or one that this process doesn't see
    static int of(List<String> addresses, CudaDriver driver) {
        if (addresses.isEmpty()) {
            return 0;
        }
        if (addresses.size() > 1) {
            throw new ConfigurationException("an executor uses one GPU, but Spark assigned this one " + addresses
                    + ": set spark.executor.resource.gpu.amount to 1 and start more executors");
        }
        return find(addresses.getFirst(), driver.capabilities().devices());
    }

    private static int find(String address, List<DeviceCapabilities> devices) {
        OptionalInt ordinal = ordinal(address);
        for (DeviceCapabilities device : devices) {
            boolean isIt = ordinal.isPresent()
                    ? device.device() == ordinal.getAsInt()
                    : address.endsWith(String.valueOf(device.uuid()));
            if (isIt) {
                return device.device();
            }
        }
        throw new ConfigurationException("Spark assigned this executor the GPU '" + address + "', but its process sees "
                + devices.stream()
                        .map(each -> each.device() + " (" + each.uuid() + ")")
                        .toList());
    }

    private static OptionalInt ordinal(String address) {
        return address.matches("[0-9]{1,4}") ? OptionalInt.of(Integer.parseInt(address)) : OptionalInt.empty();
    }
}
