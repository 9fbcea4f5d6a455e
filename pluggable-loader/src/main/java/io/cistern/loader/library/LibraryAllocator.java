package io.cistern.loader.library;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Failures;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamUses;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// An allocator in C. These steps keep each call, and all that the library does in it, from affecting the
/// caller:
///
/// 1. The device's primary context is made current, for a library that ignores its argument `device`.
/// 2. The library is called; null means out of memory.
/// 3. The previous context is restored, whatever the library made current.
/// 4. On a real GPU, the returned address is [checked][PointerCheck] before the program gets it.
///
/// On a simulated GPU there is no context, and the library returns no memory of that GPU: addresses are
/// counted, but nothing can be read or written there.
///
/// **Threads.** Any number of threads may call the library at once, which it must allow. Only allocations
/// in a pool of the library are serialised.
final class LibraryAllocator implements DeviceAllocator, StreamUses, MemorySharing {
    private static final AtomicLong LAST_POOL = new AtomicLong();

    private final LibraryFunctions functions;
    private final CudaDriver driver;
    private final boolean hasContexts;
    private final @Nullable PointerCheck check;

    /// The number of the library's pool; 0 if it has none.
    private final long pool;

    LibraryAllocator(LibraryFunctions functions, CudaDriver driver, @Nullable PointerCheck check) {
        this.functions = functions;
        this.driver = driver;
        this.hasContexts = !driver.simulated();
        this.check = check;
        this.pool = functions.has(LibraryFunctions.BEGIN_POOL) ? LAST_POOL.incrementAndGet() : 0;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = call(byteSize, device, stream);
        if (address == 0) {
            throw new DeviceOutOfMemoryException(byteSize, device, "library " + functions.library() + " returned null");
        }
        return check == null ? address : check.taken(address, byteSize, device);
    }

    private long call(long byteSize, int device, long stream) {
        long before = hasContexts ? driver.devices().enterContext(device) : 0;
        try {
            return pool == 0 ? functions.allocate(byteSize, device, stream) : callInPool(byteSize, device, stream);
        } finally {
            leave(device, before);
        }
    }

    /// Allocates in this allocator's pool, under a lock, since the library knows one pool at a time.
    private long callInPool(long byteSize, int device, long stream) {
        synchronized (LAST_POOL) {
            LibraryCalls.Rare.pool(functions.hook(LibraryFunctions.BEGIN_POOL), device, pool);
            try {
                return functions.allocate(byteSize, device, stream);
            } finally {
                LibraryCalls.Rare.pool(functions.hook(LibraryFunctions.END_POOL), device, pool);
            }
        }
    }

    private void leave(int device, long before) {
        if (hasContexts) {
            driver.devices().leaveContext(device, before);
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        if (check != null) {
            check.freed(address); // first, since the library may hand the address out again
        }
        long before = hasContexts ? driver.devices().enterContext(device) : 0;
        try {
            functions.free(address, byteSize, device, stream);
        } finally {
            leave(device, before);
        }
    }

    private void inContext(int device, Runnable hook) {
        long before = hasContexts ? driver.devices().enterContext(device) : 0;
        try {
            hook.run();
        } finally {
            leave(device, before);
        }
    }

    /// {@inheritDoc}
    ///
    /// Calls the library's `reset`, which releases idle memory on all devices; without `reset`, nothing is
    /// released.
    @Override
    public long trim(int device, long keepBytes) {
        if (!functions.has(LibraryFunctions.RESET) || keepBytes == Long.MAX_VALUE) {
            return 0;
        }
        long before = driver.memory().freeBytes(device);
        inContext(device, () -> LibraryCalls.Rare.reset(functions.hook(LibraryFunctions.RESET)));
        return Math.max(0, driver.memory().freeBytes(device) - before);
    }

    void setFraction(double fraction, int deviceCount) {
        for (int each = 0; each < deviceCount; each++) {
            int device = each;
            inContext(
                    device,
                    () -> LibraryCalls.Rare.memoryFraction(
                            functions.hook(LibraryFunctions.MEMORY_FRACTION), fraction, device));
        }
    }

    /// Passes the use to `record_stream`; without it, the framework handles uses on other streams.
    @Override
    public boolean recordUse(long address, int device, long stream) {
        if (!functions.has(LibraryFunctions.RECORD_STREAM)) {
            return false;
        }
        inContext(
                device,
                () -> LibraryCalls.Rare.recordStream(functions.hook(LibraryFunctions.RECORD_STREAM), address, stream));
        return true;
    }

    /// {@inheritDoc}
    ///
    /// Asks the library's `base_alloc`; without it, asks the driver.
    @Override
    public Optional<Segment> base(long address, int device) {
        if (!functions.has(LibraryFunctions.BASE_ALLOC)) {
            var range = driver.memory().range(device, address);
            return Optional.of(new Segment(range.address(), range.byteSize(), device));
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment size = arena.allocate(ValueLayout.JAVA_LONG);
            long[] base = new long[1];
            inContext(
                    device,
                    () -> base[0] = LibraryCalls.Rare.base(functions.hook(LibraryFunctions.BASE_ALLOC), address, size));
            return base[0] == 0
                    ? Optional.empty()
                    : Optional.of(new Segment(base[0], size.get(ValueLayout.JAVA_LONG, 0), device));
        }
    }

    /// Releases this allocator's pool in the library, if it has one. The library stays loaded, so that it
    /// can be opened again.
    @Override
    public void close() {
        Failures failures = new Failures();
        for (int each = 0; pool != 0 && each < driver.devices().count(); each++) {
            int device = each;
            failures.gather(() -> inContext(
                    device, () -> LibraryCalls.Rare.pool(functions.hook(LibraryFunctions.RELEASE_POOL), device, pool)));
        }
        failures.rethrow();
    }
}
