package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.NcclLibrary.LoadResult;
import io.cistern.spi.Availability;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.WeakHashMap;

/// The NCCL that belongs to a driver: libnccl for a real one, its simulation for a simulated one. One for each
/// driver, so that all that is opened on the driver meets.
final class NcclApis {
    /// libnccl is looked for once, when it is first wanted.
    private static final class Native {
        static final LoadResult FOUND = NcclLibrary.find();
    }

    /// Both weak, since what is open on a driver knows it.
    private static final Map<CudaDriver, WeakReference<NcclApi>> OPEN = new WeakHashMap<>();

    private NcclApis() {}

    static Availability availability(boolean simulated) {
        if (simulated || Native.FOUND.library().isPresent()) {
            return Availability.yes();
        }
        return Availability.no(Native.FOUND.reason());
    }

    /// @throws ConfigurationException if there is no NCCL, with the reason
    static NcclApi of(CudaDriver driver) {
        synchronized (OPEN) {
            WeakReference<NcclApi> known = OPEN.get(driver);
            NcclApi api = known == null ? null : known.get();
            if (api == null) {
                api = open(driver);
                OPEN.put(driver, new WeakReference<>(api));
            }
            return api;
        }
    }

    private static NcclApi open(CudaDriver driver) {
        if (driver.simulated()) {
            return new SimulatedNccl(driver);
        }
        NcclLibrary library = Native.FOUND
                .library()
                .orElseThrow(() -> new ConfigurationException("NCCL can't be used: " + Native.FOUND.reason()));
        return new NativeNccl(library, driver.devices());
    }
}
