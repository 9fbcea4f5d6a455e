package io.cistern.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.PointerAttribute;
import io.cistern.internal.names.FrameworkFrames;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Reports non-blocking copies that can't overlap other work because their host memory is not pinned: once
/// for each place in the program, as a warning of the logger `io.cistern.copies`. Never throws.
final class PageableCopies {
    private final CudaDriver driver;
    private final CopyOptions options;
    private final Set<StackTraceElement> seen = ConcurrentHashMap.newKeySet();

    PageableCopies(CudaDriver driver, CopyOptions options) {
        this.driver = driver;
        this.options = options;
    }

    /// Checks a copy from or to native memory that is about to be enqueued.
    void sees(int device, MemorySegment host, CopyMode mode) {
        if (mode == CopyMode.NON_BLOCKING
                && options.reportsPageableCopies()
                && host.byteSize() > 0
                && !isPinned(device, host)) {
            report(host.byteSize());
        }
    }

    private boolean isPinned(int device, MemorySegment host) {
        try {
            return driver.memory().attribute(device, PointerAttribute.MEMORY_TYPE, host.address()) != 0;
        } catch (CudaException unknown) {
            return false;
        }
    }

    private void report(long byteSize) {
        StackTraceElement place = FrameworkFrames.caller();
        if (seen.add(place)) {
            System.getLogger("io.cistern.copies")
                    .log(
                            Level.WARNING,
                            "a non-blocking copy of " + byteSize
                                    + " bytes waits for the driver, since its host memory is not"
                                    + " pinned: use a PinnedBuffer instead; at " + place);
        }
    }
}
