package io.cistern.suites;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.HashMap;
import java.util.Map;

/// Holds streams and releases them, any number of times, without taking device memory: each hold waits for a
/// word of its own in one piece of pinned memory.
///
/// A thread that holds a stream must release it before it waits for the device.
final class HeldStreams implements AutoCloseable {
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();

    /// The number of holds before all streams must be idle, so that the words can be reused.
    private static final int WORDS = 1024;

    private final CudaDriver driver;
    private final int device;
    private final MemoryKernels kernels;
    private final MemorySegment flags;
    private final Map<Long, Integer> held = new HashMap<>();
    private int next;

    HeldStreams(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
        this.kernels = MemoryKernels.load(driver, device);
        this.flags = driver.memory().allocateHost(device, (long) WORDS * Integer.BYTES);
        set(WORDS, 0);
    }

    /// Holds a stream from its present end on. Does nothing if it is held already, or if no word is left.
    void hold(long stream) {
        if (next < WORDS && held.putIfAbsent(stream, next) == null) {
            kernels.latch(flags.address() + (long) next * Integer.BYTES, stream);
            next++;
        }
    }

    boolean holds(long stream) {
        return held.containsKey(stream);
    }

    boolean any() {
        return !held.isEmpty();
    }

    void release(long stream) {
        Integer word = held.remove(stream);
        if (word != null) {
            FLAG.setVolatile(flags, (long) word * Integer.BYTES, 1);
        }
    }

    /// Releases all streams.
    void release() {
        held.keySet().stream().toList().forEach(this::release);
    }

    /// Releases all streams and waits for the device. Every word can be reused then.
    void releaseAll() {
        release();
        driver.devices().synchronize(device);
        set(next, 0);
        next = 0;
    }

    /// Releases every stream from any thread, if the holding thread waits for the device. Streams that are held
    /// afterwards are released at once.
    void giveUp() {
        set(WORDS, 1);
    }

    private void set(int words, int value) {
        for (int word = 0; word < words; word++) {
            FLAG.setVolatile(flags, (long) word * Integer.BYTES, value);
        }
    }

    @Override
    public void close() {
        releaseAll();
        driver.memory().freeHost(device, flags);
        kernels.close();
    }
}
