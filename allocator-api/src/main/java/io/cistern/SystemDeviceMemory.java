package io.cistern;

import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import io.cistern.internal.options.SpecProblems;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Opens the process's own device memory on first use. If that fails, each call throws the same exception.
/// The initialiser catches it: an exception that leaves a class initialiser reaches the program as an error
/// of the class, and later calls get an error without a reason.
final class SystemDeviceMemory {
    /// Returns the device memory, or throws the exception.
    private static final Supplier<DeviceMemory> OPENED = opened();

    private SystemDeviceMemory() {}

    private static Catalog discovered() {
        return Catalog.discover(List.of(), List.of());
    }

    private static Supplier<DeviceMemory> opened() {
        try {
            DeviceMemory memory = DeviceMemory.builder(CudaDrivers.openBest())
                    .catalog(discovered())
                    .open();
            Opened.memory = memory;
            return () -> memory;
        } catch (IllegalSettingException e) {
            return failing(new ConfigurationException(
                    SettingProblems.all(Settings.ofProcess(), e, spec -> SpecProblems.of(spec, discovered())), e));
        } catch (RuntimeException e) {
            return failing(e);
        }
    }

    private static Supplier<DeviceMemory> failing(RuntimeException failure) {
        return () -> {
            throw failure;
        };
    }

    static DeviceMemory get() {
        return OPENED.get();
    }

    /// Holds the device memory if it was opened. Reading it opens nothing.
    static final class Opened {
        static volatile @Nullable DeviceMemory memory;

        private Opened() {}
    }
}
