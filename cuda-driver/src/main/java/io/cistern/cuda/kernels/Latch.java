package io.cistern.cuda.kernels;

import io.cistern.cuda.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/// Holds one stream until it is opened. Made by [MemoryKernels#hold]. Any thread may call.
public final class Latch implements AutoCloseable {
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();

    private final CudaDriver driver;
    private final int device;
    private final long stream;
    private final MemorySegment flag;
    private boolean closed;

    Latch(CudaDriver driver, int device, long stream) {
        this.driver = driver;
        this.device = device;
        this.stream = stream;
        flag = driver.memory().allocateHost(device, ValueLayout.JAVA_INT.byteSize());
        FLAG.setVolatile(flag, 0L, 0);
    }

    /// The flag's address, for host and device.
    long address() {
        return flag.address();
    }

    /// Lets the stream go on. Opening twice does nothing, and so does opening after [#close].
    public synchronized void open() {
        if (!closed) {
            FLAG.setVolatile(flag, 0L, 1);
        }
    }

    /// Opens, waits for the stream, and frees the flag. Closing twice does nothing.
    ///
    /// @throws io.cistern.cuda.CudaException if work of the stream failed
    @Override
    public void close() {
        if (openForGood()) {
            driver.streams().synchronize(device, stream);
            driver.memory().freeHost(device, flag);
        }
    }

    private synchronized boolean openForGood() {
        open();
        boolean first = !closed;
        closed = true;
        return first;
    }
}
