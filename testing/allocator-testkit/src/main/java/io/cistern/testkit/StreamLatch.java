package io.cistern.testkit;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/// Holds streams until the host lets them go: what comes before is done, what comes after cannot start. With it a
/// test decides what has finished and what has not, and needs no timing.
///
/// Streams are held by a kernel that waits for a word of pinned memory. Calls that wait for running work,
/// `cuMemFree` among them, must not be made by the thread that will let go.
///
/// **Threads.** Any thread may let go.
public final class StreamLatch implements AutoCloseable {
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();

    private final CudaDriver driver;
    private final int device;
    private final MemoryKernels kernels;
    private final MemorySegment flag;

    /// Makes a latch. Loads its kernel, which may wait for running work.
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

    /// Lets all streams go, now and for good. Doing it twice does nothing.
    public void release() {
        FLAG.setVolatile(flag, 0L, 1);
    }

    /// Lets all streams go, waits for them and frees the latch.
    @Override
    public void close() {
        release();
        driver.devices().synchronize(device);
        driver.memory().freeHost(device, flag);
        kernels.close();
    }
}
