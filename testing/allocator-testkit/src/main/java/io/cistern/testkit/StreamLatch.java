package io.cistern.testkit;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/// Holds streams until the host releases them: earlier work of a stream runs to its end, and later work
/// can't start. So a test can decide which work has finished, without depending on timing.
///
/// A kernel that waits for a word of pinned memory holds each stream. The thread that will release them must
/// not make calls that wait for running work, such as `cuMemFree`.
///
/// **Threads.** Any thread may release.
public final class StreamLatch implements AutoCloseable {
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();

    private final CudaDriver driver;
    private final int device;
    private final MemoryKernels kernels;
    private final MemorySegment flag;

    /// Creates a latch. This loads its kernel, which may wait for running work.
    ///
    /// @param driver the driver
    /// @param device the device whose streams it can hold
    public StreamLatch(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
        this.kernels = MemoryKernels.load(driver, device);
        this.flag = driver.memory().allocateHost(device, Integer.BYTES);
        FLAG.setVolatile(flag, 0L, 0);
    }

    /// Holds a stream, from its present end on, until [#release()].
    ///
    /// @param stream a stream of the latch's device
    public void hold(long stream) {
        kernels.latch(flag.address(), stream);
    }

    /// Releases all streams for good. Releasing twice does nothing.
    public void release() {
        FLAG.setVolatile(flag, 0L, 1);
    }

    /// Releases all streams, waits for the device and frees the latch.
    @Override
    public void close() {
        release();
        driver.devices().synchronize(device);
        driver.memory().freeHost(device, flag);
        kernels.close();
    }
}
