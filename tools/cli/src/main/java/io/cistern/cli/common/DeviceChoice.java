package io.cistern.cli.common;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DriverChoice;
import java.util.OptionalLong;

/// Opens the device of `--device`: `auto`, `simulated` or `cuda:N`.
public final class DeviceChoice {
    private DeviceChoice() {}

    private static final String SIMULATED = "simulated";

    /// Opens the device. The setting `cistern.driver` decides what `auto` means.
    ///
    /// @param capacityBytes the memory of a simulated device; of a real one, each replay holds the rest
    /// @throws UsageException if there is no such device; the message says why
    public static ReplayDevice open(String choice, OptionalLong capacityBytes) {
        return switch (choice) {
            case SIMULATED -> new ReplayDevice.Simulated(capacityBytes);
            case "auto" -> chosen(capacityBytes);
            default -> real(choice, ordinal(choice), cuda(), capacityBytes);
        };
    }

    private static ReplayDevice chosen(OptionalLong capacityBytes) {
        DriverChoice choice = choose();
        if (!choice.provider().name().equals(SIMULATED)) {
            return real("auto", 0, choice.provider(), capacityBytes);
        }
        return new ReplayDevice.Simulated(capacityBytes, choice.asked(), choice.reason());
    }

    /// Chooses the driver that a program gets here if it names none.
    ///
    /// @throws UsageException if the choice fails; the message says why
    private static DriverChoice choose() {
        try {
            return CudaDrivers.choose();
        } catch (IllegalStateException e) {
            throw new UsageException(String.valueOf(e.getMessage()));
        }
    }

    private static CudaDriverProvider cuda() {
        return CudaDrivers.providers().stream()
                .filter(provider -> provider.name().equals("cuda"))
                .findFirst()
                .orElseThrow(() -> new UsageException("no CUDA driver binding found"));
    }

    private static int ordinal(String choice) {
        if (!choice.matches("cuda:\\d{1,4}")) {
            throw new UsageException("--device must be auto, simulated or cuda:N, not " + choice);
        }
        return Integer.parseInt(choice.substring("cuda:".length()));
    }

    private static ReplayDevice real(
            String choice, int ordinal, CudaDriverProvider provider, OptionalLong capacityBytes) {
        CudaDriver driver = open(choice, provider);
        int count = driver.devices().count();
        if (ordinal >= count) {
            driver.close();
            throw new UsageException("--device " + choice + ": the driver has devices 0 to " + (count - 1));
        }
        return new ReplayDevice.Real(driver, ordinal, capacityBytes);
    }

    private static CudaDriver open(String choice, CudaDriverProvider provider) {
        provider.unavailableBecause().ifPresent(reason -> {
            throw new UsageException("--device " + choice + " can't be used: " + reason);
        });
        try {
            return provider.open();
        } catch (CudaException | IllegalStateException e) {
            throw new UsageException("--device " + choice + " can't be used: " + e.getMessage());
        }
    }
}
