package io.cistern;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.names.Sizes;
import io.cistern.internal.reclaim.OutOfMemoryHandler;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.threads.RestingThreads;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Admits memory that other code allocates. Each admission is a block of an allocator that provides no
/// memory, so limits, statistics, leaks, events and reports include it, and the reclaim steps are tried for
/// it.
///
/// **Order.** The requests for a device are decided one at a time, in order of arrival.
///
/// **Threads.** Any.
final class Admissions implements DeviceAllocator {
    private static final String NAME = "admitted";

    /// Addresses in the owner table that no device has, 64 KiB apart and counted down.
    private static final long LAST_ADDRESS = 1L << 49;

    private static final long SPACING = 64 << 10;

    private static final long PAUSE_NANOS = 500_000;
    private static final long LONGEST_PAUSE_NANOS = 20_000_000;

    /// The interval at which a waiting request that does not seem to fit repeats all reclaim steps.
    private static final long SEARCH_NANOS = 250_000_000;

    private final DeviceMemory memory;
    private final DeviceReserves reserves;
    private final OfDevice[] devices;
    private final AtomicLong addresses = new AtomicLong();
    private final ConcurrentLinkedQueue<Long> freeAddresses = new ConcurrentLinkedQueue<>();
    private @Nullable Allocator allocator;

    /// The admissions on one device.
    private static final class OfDevice {
        /// Held by the request that is being decided. Fair, so that requests are decided in order of
        /// arrival.
        final ReentrantLock turn = new ReentrantLock(true);

        final AtomicLong admitted = new AtomicLong();
        final AtomicLong untaken = new AtomicLong();

        /// Changes whenever an admission ends.
        final AtomicLong ended = new AtomicLong();

        /// The basis of the request that is being decided. Guarded by its turn.
        Admission.Basis basis = Admission.Basis.ESTIMATE;
    }

    Admissions(DeviceMemory memory) {
        this.memory = memory;
        this.reserves = memory.registry.reserves();
        this.devices = IntStream.range(0, memory.environment().deviceCount())
                .mapToObj(_ -> new OfDevice())
                .toArray(OfDevice[]::new);
    }

    private synchronized Allocator allocator() {
        if (allocator == null) {
            allocator = memory.open(OpenOptions.made(NAME, this));
        }
        return allocator;
    }

    /// Waits until the bytes are admitted.
    ///
    /// @param longest the longest wait; null to wait indefinitely
    /// @throws DeviceOutOfMemoryException if they can never be admitted, or not in time, or the thread is
    ///     interrupted
    Admission admit(int device, long byteSize, @Nullable Duration longest, Admission.Basis basis) {
        OpenAllocator opened = allocator().opened();
        Route route = opened.route(device);
        Sizes.notNegative("byteSize", byteSize);
        OfDevice here = devices[device];
        if (byteSize == 0) {
            return new Admission(this, 0, 0, device);
        }
        long end = longest == null ? Long.MAX_VALUE : deadline(longest);
        begin(here, byteSize, device, end);
        try {
            here.basis = basis;
            long address = admitted(opened, route, byteSize, end);
            try {
                return new Admission(this, address, byteSize, device);
            } catch (OutOfMemoryError full) { // of the Java heap
                end(address, device, byteSize);
                throw full;
            }
        } finally {
            here.turn.unlock();
        }
    }

    private static long deadline(Duration longest) {
        if (longest.isNegative()) {
            throw new IllegalArgumentException("longest is negative: " + longest);
        }
        return System.nanoTime() + TimeUnit.NANOSECONDS.convert(longest);
    }

    private static boolean isOver(long end) {
        return end != Long.MAX_VALUE && System.nanoTime() - end >= 0;
    }

    private static void begin(OfDevice here, long byteSize, int device, long end) {
        if (!here.turn.hasQueuedThreads() && here.turn.tryLock()) { // even if the thread is interrupted
            return;
        }
        boolean mine = false;
        try {
            long left = end == Long.MAX_VALUE ? Long.MAX_VALUE : Math.max(0, end - System.nanoTime());
            mine = here.turn.tryLock(left, TimeUnit.NANOSECONDS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        if (!mine) {
            throw Thread.currentThread().isInterrupted()
                    ? interrupted(byteSize, device)
                    : new DeviceOutOfMemoryException(
                            byteSize, device, "not admitted in time: earlier requests are still waiting");
        }
    }

    private long admitted(OpenAllocator opened, Route route, long byteSize, long end) {
        OfDevice here = devices[route.device()];
        long pause = PAUSE_NANOS;
        long searched = 0;
        DeviceOutOfMemoryException refusal = null;
        while (true) {
            long seen = here.ended.get();
            if (refusal == null || mayFit(route.device(), byteSize) || System.nanoTime() - searched > SEARCH_NANOS) {
                try {
                    return search(opened, route, byteSize);
                } catch (DeviceOutOfMemoryException refused) {
                    refusal = refused;
                    searched = System.nanoTime();
                }
            }
            if (isOver(end) || refusal.canNeverFit() || !couldEverFit(route.device(), byteSize)) {
                throw refusal;
            }
            if (Thread.currentThread().isInterrupted()) {
                throw interrupted(byteSize, route.device());
            }
            long rest = here.ended.get() != seen ? PAUSE_NANOS : Math.min(2 * pause, LONGEST_PAUSE_NANOS);
            RestingThreads.during(() -> LockSupport.parkNanos(rest));
            pause = rest;
        }
    }

    private static DeviceOutOfMemoryException interrupted(long byteSize, int device) {
        return new DeviceOutOfMemoryException(byteSize, device, "not admitted: the thread was interrupted");
    }

    /// Admits the bytes, after reclaiming idle memory if necessary. Pools do not lend for admissions.
    private long search(OpenAllocator opened, Route route, long byteSize) {
        long[] admitted = new long[1];
        long begun = memory.observed.begin();
        Runnable counting = () -> {
            admitted[0] = memory.router.allocateThrough(route, byteSize, 0);
            if (admitted[0] == Router.REFUSED) {
                throw opened.closed();
            }
        };
        try {
            counting.run();
        } catch (DeviceOutOfMemoryException failure) {
            var request = new OutOfMemoryHandler.Request(
                    route,
                    null,
                    byteSize,
                    0,
                    _ -> {
                        throw opened.closed();
                    },
                    counting);
            memory.outOfMemory.serve(request, failure);
        } finally {
            memory.observed.allocated(Math.max(0, admitted[0]), 0, begun);
        }
        return admitted[0];
    }

    private boolean couldEverFit(int device, long byteSize) {
        MemoryLimit limit = memory.limits().device(device);
        return byteSize <= total(device) - reserves.of(device) && byteSize <= limit.byteSize();
    }

    private long total(int device) {
        return memory.driver().devices().totalBytes(device);
    }

    /// Returns whether the bytes may fit once idle memory is given back.
    private boolean mayFit(int device, long byteSize) {
        MemoryLimit limit = memory.limits().device(device);
        return byteSize <= limit.byteSize() - limit.usedBytes() && byteSize <= room(device) + idle(device);
    }

    private long idle(int device) {
        OpenAllocator own = allocator().opened();
        return memory.registry.all().stream()
                .filter(each -> !each.equals(own))
                .mapToLong(
                        each -> reserved(each, device) - each.statistics(device).requestedBytes())
                .sum();
    }

    /// Returns the bytes that can be admitted now.
    private long room(int device) {
        OfDevice here = devices[device];
        long reserve = reserves.of(device);
        return here.basis == Admission.Basis.FREE_MEMORY
                ? memory.driver().memory().freeBytes(device) - reserve - here.untaken.get()
                : total(device) - reserve - reserved(device);
    }

    /// Returns the bytes that all allocators have reserved, including the admitted bytes.
    private long reserved(int device) {
        return memory.registry.all().stream()
                .mapToLong(each -> reserved(each, device))
                .sum();
    }

    private long reserved(OpenAllocator allocator, int device) {
        return allocator.isWithin(memory.registry.all())
                ? 0
                : allocator
                        .reservedBytes(device)
                        .orElseGet(() -> allocator.statistics(device).requestedBytes());
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long room = room(device);
        if (byteSize > total(device)) {
            throw DeviceOutOfMemoryException.aboveDevice(byteSize, device, total(device));
        }
        if (byteSize > room) {
            throw new DeviceOutOfMemoryException(
                    byteSize,
                    device,
                    "not admitted: there is room for only " + Math.max(0, room) + " bytes, "
                            + (devices[device].basis == Admission.Basis.FREE_MEMORY
                                    ? "according to the driver"
                                    : "given the reserved and admitted bytes"));
        }
        Long used = freeAddresses.poll();
        devices[device].admitted.addAndGet(byteSize);
        devices[device].untaken.addAndGet(byteSize);
        return used != null ? used : LAST_ADDRESS - SPACING * addresses.incrementAndGet();
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        devices[device].admitted.addAndGet(-byteSize);
        try {
            freeAddresses.add(address);
        } catch (OutOfMemoryError full) {
            // The address is not used again.
        }
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return OptionalLong.of(devices[device].admitted.get());
    }

    void taken(int device, long byteSize) {
        devices[device].untaken.addAndGet(-byteSize);
    }

    /// Ends an admission.
    ///
    /// @param untaken the bytes for which room was still left
    void end(long address, int device, long untaken) {
        taken(device, untaken);
        memory.free(address, 0);
        devices[device].ended.incrementAndGet();
    }
}
