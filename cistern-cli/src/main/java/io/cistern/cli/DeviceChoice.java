package io.cistern.cli;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.CudaException;
import java.util.Optional;
import java.util.OptionalLong;

/// What `--device` says: `auto`, `simulated` or `cuda:N`.
final class DeviceChoice {
    private DeviceChoice() {}

    /// Opens the device.
    ///
    /// @param capacityBytes its memory if simulated, the limit on it if real
    /// @throws UsageException if there is no such device, with the reason
    static ReplayDevice open(String choice, OptionalLong capacityBytes) {
        return switch (choice) {
            case "simulated" -> new ReplayDevice.Simulated(capacityBytes);
            case "auto" ->
                unavailableBecause().isEmpty() ? real(0, capacityBytes) : new ReplayDevice.Simulated(capacityBytes);
            default -> real(ordinal(choice), capacityBytes);
        };
    }

    /// The provider of the real driver.
    static Optional<CudaDriverProvider> cuda() {
        return CudaDrivers.providers().stream()
                .filter(provider -> provider.name().equals("cuda"))
                .findFirst();
    }

    private static Optional<String> unavailableBecause() {
        return cuda().map(CudaDriverProvider::unavailableBecause).orElse(Optional.of("no CUDA driver binding found"));
    }

    private static int ordinal(String choice) {
        if (!choice.matches("cuda:\\d{1,4}")) {
            throw new UsageException("--device must be auto, simulated or cuda:N, not " + choice);
        }
        return Integer.parseInt(choice.substring("cuda:".length()));
    }

    private static ReplayDevice real(int ordinal, OptionalLong limitBytes) {
        unavailableBecause().ifPresent(reason -> {
            throw new UsageException("--device cuda:" + ordinal + " can't be used: " + reason);
        });
        CudaDriver driver = open(ordinal);
        int count = driver.devices().count();
        if (ordinal >= count) {
            driver.close();
            throw new UsageException("--device cuda:" + ordinal + ": the driver has devices 0 to " + (count - 1));
        }
        return new ReplayDevice.Real(driver, ordinal, limitBytes);
    }

    private static CudaDriver open(int ordinal) {
        try {
            return cuda().orElseThrow().open();
        } catch (CudaException | IllegalStateException e) {
            throw new UsageException("--device cuda:" + ordinal + " can't be used: " + e.getMessage());
        }
    }
}
