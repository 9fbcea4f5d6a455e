package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Streams;
import io.cistern.internal.names.Failures;
import io.cistern.spi.StreamOrder;

/// What `async` has of one device: pools, blocks that other streams may still use, and counts of the rare things.
///
/// **Threads.** Any.
final class AsyncDevice {
    final int device;
    final DevicePools pools;
    final DeferredFrees later;
    final PoolEvents events = new PoolEvents();
    private final FailedFrees refused;
    private final CudaDriver driver;
    private final MemoryPools memory;

    private final DriverMutex mutex = new DriverMutex();

    /// Whether there is anything to do beside the driver's calls: a threshold that adapts; from the first of them
    /// on, uses on other streams and frees that were refused; turns. One read in place of one for each.
    ///
    /// eventful = lasting ∨ inTurns. Changes under the monitor of the turns; never false once something lasts.
    volatile boolean eventful;

    private volatile boolean lasting;
    private volatile boolean inTurns;

    // Made in advance, for closing without Java heap.
    private final Failures failures = new Failures();
    private final Runnable synchronizing = this::synchronize;
    private final Runnable waitingForAll = this::synchronizeUnlessDead;
    private final Runnable closingPools;

    /// Waits for all work, and ends the pools, whatever of that fails.
    final Runnable closing = this::close;

    // Plain: a count that is lost puts a look off.
    private int callsUntilLook = DriverMutex.CALLS_BETWEEN_LOOKS;

    AsyncDevice(CudaDriver driver, MemoryPools memory, int device, AsyncOptions options, StreamOrder order) {
        this.driver = driver;
        this.memory = memory;
        this.device = device;
        this.pools = new DevicePools(driver, device, options);
        this.closingPools = pools::close;
        this.lasting = options.adaptive();
        this.eventful = lasting;
        this.refused = new FailedFrees(memory, driver.graphs(), device);
        this.later = new DeferredFrees(device, order, this::freeLater);
    }

    /// Whether an allocation is a call of the driver and nothing else.
    boolean isPlain() {
        return !eventful && --callsUntilLook >= 0;
    }

    /// Allocates where it is more than that; fails if the driver does.
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
            return memory.allocateFrom(device, pool, byteSize, stream);
        } finally {
            if (turn) {
                endTurn();
            }
        }
    }

    boolean inTurns() {
        return inTurns;
    }

    /// Where something lasts, [#isPlain] did not count.
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

    /// A free that saw this false would not wait for other streams.
    private void becomeEventful() {
        if (!lasting) {
            synchronized (mutex) {
                eventful = true; // first, since others read the second to know of both
                lasting = true;
            }
        }
    }

    /// The pool for an allocation on a stream, whose order with what is rare is seen to.
    long poolFor(long byteSize, long stream) {
        long pool = pools.handle(byteSize, stream);
        if (lasting) {
            refused.freeAgainOn(stream);
            later.freePassed(byteSize);
            pools.called(byteSize);
        }
        return pool;
    }

    /// Frees a block while [#eventful].
    void free(long address, long byteSize, long stream) {
        pools.freed(byteSize);
        DeferredFree usedElsewhere = later.find(address);
        if (usedElsewhere == null) {
            freeNow(address, stream);
        } else {
            later.free(usedElsewhere, byteSize, oneName(stream));
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
            memory.free(device, address, stream);
        } catch (CudaException failure) {
            freeFailed(address, stream, failure);
        } catch (OutOfMemoryError ofTheHeap) {
            freeNotMade(address, stream);
        } finally {
            if (turn) {
                endTurn();
            }
        }
    }

    /// Returns whether there is a turn to end.
    private boolean beginTurn() {
        return inTurns && mutex.begin();
    }

    /// Keeps a free that the driver refused for another try.
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

    /// Notes a use, unless it is on a stream that only the calling thread can name.
    boolean recordUse(long address, long stream) {
        if (stream == Streams.PER_THREAD_DEFAULT) {
            return false;
        }
        becomeEventful();
        later.record(address, oneName(stream));
        return true;
    }

    /// The legacy default stream has two.
    private static long oneName(long stream) {
        return stream == Streams.LEGACY_DEFAULT ? 0 : stream;
    }

    void streamClosing(long stream) {
        long name = oneName(stream);
        later.streamClosing(name);
        refused.streamClosing(stream);
        pools.streamClosing(name);
    }

    /// Waits for all work, so that every free completes: also those that the driver had not heard of, which a
    /// second wait is for, since pools see frees when the host waits for them. What other threads free meanwhile
    /// is not taken for waited for.
    ///
    /// @return false if captures under way forbid to wait; then what has passed is freed
    boolean synchronize() {
        events.synchronisations.increment();
        long waiting = later.sealAll();
        long before = refused.latest();
        if (!waitForDevice()) {
            later.freePassed();
            return false;
        }
        boolean some = later.free(waiting);
        some |= refused.freeAgain(before);
        return !some || waitForDevice();
    }

    /// Gives back what the driver keeps for graphs and none uses now: nobody else asks for it once they are gone.
    long trimGraphs() {
        return driver.devices().isUsed(device) ? GraphAllocations.trim(driver, device, 0) : 0;
    }

    private boolean waitForDevice() {
        try {
            driver.devices().synchronize(device);
            return true;
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                return false;
            }
            throw failure;
        }
    }

    /// Needs no Java heap of its own.
    private void close() {
        if (pools.all().length > 0) {
            failures.gather(waitingForAll);
            failures.gather(closingPools);
            failures.rethrow();
        }
    }

    private void synchronizeUnlessDead() {
        DeadContext.survive(synchronizing);
    }
}
