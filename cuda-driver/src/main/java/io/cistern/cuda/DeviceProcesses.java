package io.cistern.cuda;

import io.cistern.cuda.ffm.Nvml;
import java.util.List;

/// Tells which other processes hold memory of a device, by asking the management library (`libnvidia-ml.so.1`)
/// if it is installed.
public final class DeviceProcesses {
    /// The memory that one process holds.
    ///
    /// @param processId its number, in the system's name space unless the container hides that
    /// @param byteSize bytes of device memory; −1 if the system does not tell
    public record Holding(long processId, long byteSize) {}

    private DeviceProcesses() {}

    /// Returns the processes that hold memory of a device. Never throws: the list is empty without the library,
    /// on a simulated GPU, and if the system refuses to answer.
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
