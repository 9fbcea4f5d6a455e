package io.cistern;

import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import io.cistern.internal.options.SpecProblems;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Opens the process's own device memory when it is first asked for. If that fails, each call throws the same
/// exception. The initialiser catches it: an exception that leaves a class initialiser reaches the program as
/// an error of the class, and later calls get an error without a reason.
final class SystemDeviceMemory {
    /// This or [#FAILURE] is null.
    private static final @Nullable DeviceMemory INSTANCE;

    private static final @Nullable RuntimeException FAILURE;

    static {
        DeviceMemory opened = null;
        RuntimeException failure = null;
        try {
            opened = DeviceMemory.builder(CudaDrivers.openBest())
                    .catalog(discovered())
                    .open();
        } catch (IllegalSettingException e) {
            failure = new ConfigurationException(
                    SettingProblems.all(Settings.ofProcess(), e, spec -> SpecProblems.of(spec, discovered())), e);
        } catch (RuntimeException e) {
            failure = e;
        }
        INSTANCE = opened;
        FAILURE = failure;
        Opened.memory = opened;
    }

    private SystemDeviceMemory() {}

    private static Catalog discovered() {
        return Catalog.discover(List.of(), List.of());
    }

    static DeviceMemory get() {
        DeviceMemory memory = INSTANCE;
        if (memory == null) {
            throw Objects.requireNonNull(FAILURE);
        }
        return memory;
    }

    /// Holds the device memory if it was opened. Reading it opens nothing.
    static final class Opened {
        static volatile @Nullable DeviceMemory memory;

        private Opened() {}
    }
}
