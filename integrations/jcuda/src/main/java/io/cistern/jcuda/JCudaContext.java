package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.internal.names.ThreadNames;
import jcuda.driver.CUcontext;
import org.jspecify.annotations.Nullable;

/// Makes the context to which Cistern's memory belongs current, for calls of JCuda's driver API. It is the
/// device's primary context, which JCuda's runtime API and libraries use too.
///
/// ```java
/// try (JCudaContext context = JCudaContext.enter(memory, 0)) {
///     cuLaunchKernel(function, …);
/// }
/// ```
///
/// A program that creates its own context (`cuCtxCreate`) can't use Cistern's memory in it, because memory
/// belongs to one context. Such a program should use this context instead.
///
/// **Threads.** Each OS thread has its own current context. So only a platform thread can enter a context,
/// and the same thread must close it, the innermost context first.
public final class JCudaContext implements AutoCloseable {
    /// The innermost open context of each thread.
    private static final ThreadLocal<JCudaContext> INNERMOST = new ThreadLocal<>();

    private final CudaDriver driver;
    private final int device;
    private final long before;
    private final @Nullable JCudaContext outer = INNERMOST.get();
    private final Thread owner = Thread.currentThread();
    private boolean closed;

    private JCudaContext(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
        this.before = driver.devices().enterContext(device);
        INNERMOST.set(this);
    }

    /// Makes a device's primary context current on the calling thread until [#close].
    ///
    /// @throws IllegalStateException on a virtual thread, which may change its OS thread
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public static JCudaContext enter(DeviceMemory memory, int device) {
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException("a virtual thread changes its OS thread, and with it the current context:"
                    + " call JCuda from a platform thread");
        }
        return new JCudaContext(memory.driver(), device);
    }

    /// Returns the context as JCuda's object.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public CUcontext context() {
        return HandleField.set(new CUcontext(), driver.devices().primaryContext(device));
    }

    /// Returns whether a context of JCuda is the one to which Cistern's memory on a device belongs.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public static boolean isPrimary(DeviceMemory memory, int device, CUcontext context) {
        return HandleField.of(context, "context") == memory.driver().devices().primaryContext(device);
    }

    /// Restores the context that was current before this one was entered. Closing twice does nothing.
    ///
    /// @throws WrongThreadException if another thread entered the context
    /// @throws IllegalStateException if the thread entered another context after this one and has not
    ///     closed that one; nothing changes then
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    @Override
    @SuppressWarnings("ReferenceEquality") // threads and contexts are compared by identity
    public void close() {
        if (Thread.currentThread() != owner) {
            throw new WrongThreadException("the context was entered by " + ThreadNames.of(owner));
        }
        if (closed) {
            return;
        }
        JCudaContext innermost = INNERMOST.get();
        if (innermost != this) {
            throw new IllegalStateException("the context of device " + device + " is not the innermost: that of device "
                    + innermost.device + ", entered later, must be closed first");
        }
        closed = true;
        if (outer == null) {
            INNERMOST.remove();
        } else {
            INNERMOST.set(outer);
        }
        driver.devices().leaveContext(device, before);
    }
}
