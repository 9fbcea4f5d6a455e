package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.spi.TrimMode;

/// Creates and destroys handles in the context of their device, beside captures that are under way.
///
/// **Threads.** Any.
///
/// @param <H> the handle
final class LibraryCalls<H> {
    private final HandleLibrary<H> library;
    private final DeviceMemory memory;
    private final CudaDriver driver;
    private final int device;
    private final HandleCounters counters;

    LibraryCalls(HandleLibrary<H> library, DeviceMemory memory, int device, HandleCounters counters) {
        this.library = library;
        this.memory = memory;
        this.driver = memory.driver();
        this.device = device;
        this.counters = counters;
    }

    /// Creates a handle. If the library refuses, for example because the device has no memory, the call is
    /// repeated once after memory was freed.
    ///
    /// @param makeRoom frees memory that the pool can spare
    /// @throws HandleException with the library's errors, if it refuses both times
    void create(PooledHandle<H> empty, Runnable makeRoom) {
        try {
            createOnce(empty);
        } catch (RuntimeException refusal) {
            counters.failed(counters.failedCreations, refusal);
            if (empty.isCreated()) {
                throw refusal; // a step after the library's call failed
            }
            makeRoom.run();
            memory.trim(device, 0, TrimMode.WITHOUT_WAITING);
            createAgain(empty, refusal);
        }
        counters.created.incrementAndGet();
    }

    private void createAgain(PooledHandle<H> empty, RuntimeException before) {
        try {
            createOnce(empty);
        } catch (RuntimeException refusal) {
            counters.failed(counters.failedCreations, refusal);
            if (!refusal.equals(before)) {
                refusal.addSuppressed(before);
            }
            throw new HandleException(
                    library.name() + " creates no handle on device " + device
                            + ", also after idle handles and idle memory of the device were freed: "
                            + refusal.getMessage() + "; end threads that keep handles, or set a lower maxHandles",
                    refusal);
        }
    }

    private void createOnce(PooledHandle<H> empty) {
        var event = new HandleCreatedEvent();
        event.begin();
        inContext(() -> empty.created(library.create(device)));
        event.library = library.name();
        event.device = device;
        event.commit();
    }

    /// Destroys a handle. If its context is dead, the handle is not touched, since it died with the context. If
    /// the library refuses, the handle is lost, which is counted.
    void destroy(PooledHandle<H> handle) {
        try {
            if (!isContextDead()) {
                inContext(() -> library.destroy(handle.raw(), device));
            }
        } catch (RuntimeException refusal) {
            counters.failed(counters.failedDestructions, refusal);
        }
        counters.destroyed.incrementAndGet();
    }

    private boolean isContextDead() {
        try {
            driver.memory().freeBytes(device);
            return false;
        } catch (CudaException failure) {
            return failure.result().endsContext();
        }
    }

    private void inContext(Runnable call) {
        long before = driver.devices().enterContext(device);
        try {
            driver.graphs().relaxed(call);
        } finally {
            driver.devices().leaveContext(device, before);
        }
    }
}
