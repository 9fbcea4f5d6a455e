package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.names.Failures;
import io.cistern.internal.order.EndedStreams;
import io.cistern.spi.StreamOrder;
import org.jspecify.annotations.Nullable;

/// The state of `async` on one device: its pools, the blocks that other streams may still use, and counts of
/// rare events.
///
/// **Threads.** Any.
final class AsyncDevice {
    final int device;
    final DevicePools pools;
    final DeferredFrees later;
    final PoolEvents events = new PoolEvents();
    private final EndedStreams ended;
    private final FailedFrees refused;
    private final CudaDriver driver;
    private final MemoryPools memory;
    private final DeviceReserves reserves;
    private final boolean onDevice;

    private final DriverMutex mutex = new DriverMutex();

    /// Whether an allocation or a free has to do more than call the driver. One read covers all reasons: an
    /// adaptive threshold; uses on other streams, refused frees and ended streams, from the first of them on;
    /// turns.
    ///
    /// eventful = lasting ∨ inTurns. Changes under the monitor of the mutex; never false once `lasting` is
    /// true.
    volatile boolean eventful;

    private volatile boolean lasting;
    private volatile boolean inTurns;

    // Made in advance, so that closing needs no Java heap.
    private final Failures failures = new Failures();
    private final Runnable synchronizing = this::synchronizeNow;
    private final Runnable closingPools;

    /// Waits for all work and closes the pools, even if some of that fails.
    final Runnable closing = this::close;

    // Plain: a lost count only delays a look.
    private int callsUntilLook = DriverMutex.CALLS_BETWEEN_LOOKS;

    AsyncDevice(
            CudaDriver driver,
            MemoryPools memory,
            int device,
            AsyncOptions options,
            StreamOrder order,
            DeviceReserves reserves) {
        this.driver = driver;
        this.reserves = reserves;
        this.memory = memory;
        this.device = device;
        this.onDevice = options.location().onDevice();
        this.pools = new DevicePools(driver, device, options);
        this.closingPools = pools::close;
        this.lasting = options.adaptive();
        this.eventful = lasting;
        this.refused = new FailedFrees(memory, driver.graphs(), device);
        this.later = new DeferredFrees(device, order, this::freeLater);
        this.ended = new EndedStreams(device, order);
    }

    /// Returns the most bytes that the pools can have.
    long mostBytes() {
        return onDevice ? driver.devices().totalBytes(device) : Long.MAX_VALUE;
    }

    /// Returns whether an allocation is one call of the driver and nothing else.
    boolean isPlain() {
        return !eventful && --callsUntilLook >= 0 && reserves.of(device) == 0;
    }

    /// Allocates in the cases that [#isPlain] excludes; fails if the driver does.
    long allocate(long byteSize, long stream) {
        if (!inTurns && isTimeToLook()) {
            callsUntilLook = DriverMutex.CALLS_BETWEEN_LOOKS;
            if (mutex.areWanted()) {
                takeTurns(true);
            }
        }
        long pool = poolFor(byteSize, stream);
        boolean turn = beginTurn();
        try {
            return allocateFrom(pool, byteSize, stream);
        } finally {
            if (turn) {
                endTurn();
            }
        }
    }

    /// Allocates from a pool, but not out of the device's reserve.
    ///
    /// @throws DeviceOutOfMemoryException if the reserve refuses
    long allocateFrom(long pool, long byteSize, long stream) {
        long free = reserves.require(reserves.of(device) == 0 ? 0 : growth(pool, byteSize), device);
        long address = memory.allocateFrom(device, pool, byteSize, stream);
        try {
            reserves.requireKept(free, byteSize, device); // the pool's idle memory may be in pieces
            return address;
        } catch (RuntimeException | Error failure) {
            freeOrKeep(address, stream);
            throw failure;
        }
    }

    /// Returns how many bytes a pool obtains for a block if its idle memory can't serve.
    private long growth(long pool, long byteSize) {
        long idle = memory.attribute(device, pool, PoolAttribute.RESERVED_CURRENT)
                - memory.attribute(device, pool, PoolAttribute.USED_CURRENT);
        return idle >= byteSize
                ? 0
                : (byteSize + DriverPool.PAGE_BYTES - 1) / DriverPool.PAGE_BYTES * DriverPool.PAGE_BYTES;
    }

    boolean inTurns() {
        return inTurns;
    }

    /// While `lasting` is true, [#isPlain] does not count down, so this does.
    private boolean isTimeToLook() {
        return lasting ? --callsUntilLook < 0 : callsUntilLook < 0;
    }

    private void endTurn() {
        if (mutex.end()) {
            takeTurns(false);
        }
    }

    private void takeTurns(boolean taken) {
        synchronized (mutex) {
            inTurns = taken;
            eventful = lasting || taken;
        }
    }

    /// Sets `lasting` before its reason comes into being: a free that still saw false would not wait for other
    /// streams.
    private void becomeEventful() {
        if (!lasting) {
            synchronized (mutex) {
                eventful = true; // first, because threads read `eventful` to learn of both
                lasting = true;
            }
        }
    }

    /// Returns the pool for an allocation on a stream, after it has handled frees that are due.
    long poolFor(long byteSize, long stream) {
        long pool = pools.handle(byteSize, stream);
        if (lasting) {
            ended.opened(stream);
            refused.freeAgainOn(stream);
            later.freePassed(byteSize);
            pools.called(byteSize);
        }
        return pool;
    }

    /// Frees a block while [#eventful] is true.
    void free(long address, long byteSize, long stream) {
        pools.freed(byteSize);
        DeferredFree usedElsewhere = later.find(address);
        if (ended.contains(stream)) {
            freeBehindAll(address, byteSize, usedElsewhere);
        } else if (usedElsewhere == null) {
            freeNow(address, stream);
        } else {
            later.free(usedElsewhere, byteSize, oneName(stream));
        }
    }

    /// Frees a block whose stream has ended, once all streams of the device have passed the work they have
    /// now.
    private void freeBehindAll(long address, long byteSize, @Nullable DeferredFree known) {
        try {
            later.freeBehindAll(known != null ? known : later.unused(address), byteSize);
        } catch (OutOfMemoryError ofTheHeap) {
            refused.keep(address, Streams.PER_THREAD_DEFAULT); // kept without a stream
        }
    }

    private void freeLater(long address, long stream) {
        boolean turn = beginTurn();
        try {
            refused.free(address, stream);
        } finally {
            if (turn) {
                endTurn();
            }
        }
    }

    private void freeNow(long address, long stream) {
        refused.freeAgainOn(stream);
        boolean turn = beginTurn();
        try {
            freeOrKeep(address, stream);
        } finally {
            if (turn) {
                endTurn();
            }
        }
    }

    private void freeOrKeep(long address, long stream) {
        try {
            memory.free(device, address, stream);
        } catch (CudaException failure) {
            freeFailed(address, stream, failure);
        } catch (OutOfMemoryError ofTheHeap) {
            freeNotMade(address, stream);
        }
    }

    /// Returns whether the caller has to end a turn.
    private boolean beginTurn() {
        return inTurns && mutex.begin();
    }

    /// Keeps a free that the driver refused, for another try.
    void freeFailed(long address, long stream, CudaException failure) {
        if (!failure.result().endsContext()) {
            becomeEventful();
            refused.add(address, stream, failure);
        }
    }

    /// Keeps a free that could not be made for lack of Java heap.
    void freeNotMade(long address, long stream) {
        becomeEventful();
        refused.keep(address, stream);
    }

    /// Notes a use on another stream.
    ///
    /// @return false if only the calling thread can name the stream
    boolean recordUse(long address, long stream) {
        if (stream == Streams.PER_THREAD_DEFAULT) {
            return false;
        }
        becomeEventful();
        ended.opened(stream);
        later.record(address, oneName(stream));
        return true;
    }

    /// Returns one name for the legacy default stream, which has two.
    private static long oneName(long stream) {
        return stream == Streams.LEGACY_DEFAULT ? 0 : stream;
    }

    void streamClosing(long stream) {
        long name = oneName(stream);
        later.streamClosing(name);
        refused.streamClosing(stream);
        pools.streamClosing(name);
        if (pools.all().length > 0) {
            becomeEventful();
            ended.closing(stream);
        }
    }

    /// Waits for all work, as [#synchronizeNow] does.
    ///
    /// @return false if a capture under way forbids the wait
    boolean synchronize() {
        try {
            synchronizeNow();
            return true;
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                throw failure;
            }
            return false;
        }
    }

    /// Waits for all work, so that every free completes. Deferred and refused frees are made after the wait. They
    /// need a second wait, since pools notice completed frees when the host waits. Frees that other threads make
    /// meanwhile do not count as waited for.
    ///
    /// @throws CudaException if the driver refuses, as it does while streams are captured
    private void synchronizeNow() {
        events.synchronisations.increment();
        long waiting = later.sealAll();
        long before = refused.latest();
        driver.devices().synchronize(device);
        boolean some = later.free(waiting);
        some |= refused.freeAgain(before);
        if (some) {
            driver.devices().synchronize(device);
        }
    }

    /// Gives back memory that the driver keeps for graphs and no graph uses. Once the graphs are gone, no other
    /// caller trims it.
    long trimGraphs() {
        return driver.devices().isUsed(device) ? GraphAllocations.trim(driver, device, 0) : 0;
    }

    /// Needs no Java heap of its own.
    ///
    /// @throws CudaException if a capture forbids the wait; then nothing is closed
    private void close() {
        if (pools.all().length > 0) {
            waitForAll();
            for (int tries = 1;
                    tries < DeadContext.MOST_TRIES && later.waitingBytes() + refused.latest() > 0;
                    tries++) {
                waitForAll(); // no later call makes the frees that are left
            }
            failures.gather(closingPools);
            ended.close();
            failures.rethrow();
        }
    }

    private void waitForAll() {
        try {
            DeadContext.survive(synchronizing);
        } catch (RuntimeException | Error failure) {
            if (failure instanceof CudaException refusal && refusal.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                throw failure;
            }
            failures.add(failure);
        }
    }
}
