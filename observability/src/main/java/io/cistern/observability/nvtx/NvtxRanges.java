package io.cistern.observability.nvtx;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import java.lang.System.Logger.Level;
import java.util.concurrent.atomic.AtomicBoolean;

/// Shows the events of a [DeviceMemory] on the time line of Nsight Systems and other profilers that read
/// NVTX: a range for each scope, and a mark for each [annotation][io.cistern.Listeners#annotate], trim,
/// reclaim step, change of the current allocator, and refused request.
///
/// ```
/// try (Registration ranges = NvtxRanges.register(memory)) { … }
/// nsys profile -t cuda,nvtx java -Dcistern.observe=nvtx …             // the same without code
/// ```
///
/// The library is the one that the setting `cistern.nvtx.library` names, else `libnvToolsExt.so.1`, else
/// `libnvtx3interop.so.1`. Without a profiler, the library's functions do nothing. Java must allow native
/// access to the module `io.cistern.observability`, as for the driver.
///
/// **Threads.** Any thread may call any method at any time.
public final class NvtxRanges {
    private static final AtomicBoolean TOLD = new AtomicBoolean();

    private NvtxRanges() {}

    /// Starts to send ranges and marks to the library, until the registration or the device memory is
    /// closed. If no library is found, this method does nothing, and logs that once per process.
    ///
    /// @return a registration; closing it stops the ranges and marks
    public static Registration register(DeviceMemory memory) {
        try {
            return memory.listeners().onRareEvent(new NvtxWriter(NvtxLibrary.find()));
        } catch (UnsupportedOperationException absent) {
            if (!TOLD.getAndSet(true)) {
                System.getLogger(NvtxRanges.class.getName())
                        .log(Level.INFO, "no ranges for profilers: " + absent.getMessage());
            }
            return () -> {};
        }
    }
}
