package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import jcuda.driver.CUcontext;

/// Calls of JCuda's driver API in the context that Cistern's memory belongs to: the device's primary context, which
/// is that of JCuda's runtime API and libraries too.
///
/// ```java
/// try (JCudaContext context = JCudaContext.enter(memory, 0)) {
///     cuLaunchKernel(function, …);
/// }
/// ```
///
/// A program that makes a context of its own (`cuCtxCreate`) can't use Cistern's memory in it: contexts have memory
/// of their own. Have it take this one.
///
/// **Threads.** The driver keeps the current context by OS thread. So an entered context belongs to a platform
/// thread, which closes it, the innermost first.
public final class JCudaContext implements AutoCloseable {
    private final CudaDriver driver;
    private final int device;
    private final long before;
    private final Thread owner = Thread.currentThread();

    private JCudaContext(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
        this.before = driver.devices().enterContext(device);
    }

    /// Makes a device's primary context current on the calling thread until [#close].
    ///
    /// @throws IllegalStateException on a virtual thread, which changes its OS thread
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public static JCudaContext enter(DeviceMemory memory, int device) {
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException("a virtual thread changes its OS thread, and with it the current context:"
                    + " call JCuda from a platform thread");
        }
        return new JCudaContext(memory.driver(), device);
    }

    /// The context as JCuda's object.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public CUcontext context() {
        return HandleField.set(new CUcontext(), driver.devices().primaryContext(device));
    }

    /// Whether a context of JCuda is the one that Cistern's memory on a device belongs to.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public static boolean isPrimary(DeviceMemory memory, int device, CUcontext context) {
        return HandleField.of(context) == memory.driver().devices().primaryContext(device);
    }

    /// Makes the context current again that was it before.
    ///
    /// @throws WrongThreadException on another thread
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    @Override
    @SuppressWarnings("ReferenceEquality") // a thread equals itself alone
    public void close() {
        if (Thread.currentThread() != owner) {
            throw new WrongThreadException("the context was entered by " + owner.getName());
        }
        driver.devices().leaveContext(device, before);
    }
}
