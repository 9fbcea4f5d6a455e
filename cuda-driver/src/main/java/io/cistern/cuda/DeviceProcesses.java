package io.cistern.cuda;

import io.cistern.cuda.ffm.Nvml;
import java.util.List;

/// Which other processes hold memory of a device, from the management library (`libnvidia-ml.so.1`) where there is
/// one.
public final class DeviceProcesses {
    /// What a process holds.
    ///
    /// @param processId its number, in the system's name space where the container does not hide that
    /// @param byteSize bytes of device memory; −1 if the system does not tell
    public record Holding(long processId, long byteSize) {}

    private DeviceProcesses() {}

    /// Asks the system. Never throws: empty without the library, on a simulated GPU, and for whatever it refuses.
    public static List<Holding> others(CudaDriver driver, int device) {
        try {
            return driver.simulated()
                    ? List.of()
                    : Nvml.processes(driver.devices().uuid(device));
        } catch (RuntimeException | LinkageError unavailable) {
            return List.of();
        }
    }
}
