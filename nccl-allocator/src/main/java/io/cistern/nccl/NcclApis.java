package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.NcclLibrary.LoadResult;
import io.cistern.spi.Availability;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.WeakHashMap;

/// Returns the NCCL that belongs to a driver: libnccl for a real driver, the simulation for a simulated one.
/// There is one for each driver, so that communicators opened on the same driver can meet.
final class NcclApis {
    /// Searches for libnccl once, when it is first needed.
    private static final class Native {
        static final LoadResult FOUND = NcclLibrary.find();
    }

    /// Keys and values are weak, since everything that is open on a driver refers to its NCCL.
    private static final Map<CudaDriver, WeakReference<NcclApi>> OPEN = new WeakHashMap<>();

    private NcclApis() {}

    static Availability availability(boolean simulated) {
        if (simulated || Native.FOUND.library().isPresent()) {
            return Availability.yes();
        }
        return Availability.no(Native.FOUND.reason());
    }

    /// @throws ConfigurationException with the reason, if NCCL can't be used
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
