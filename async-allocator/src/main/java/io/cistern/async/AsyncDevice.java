package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Streams;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.names.Failures;
import io.cistern.internal.order.EndedStreams;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Left;
import io.cistern.spi.TrimResult.Reason;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// The state of `async` on one device: its pools, the blocks that other streams may still use, and counts of
/// rare events.
///
/// **Out of memory.**
/// 1. Wait for all work of the device: only memory whose frees have completed goes to another stream or to the
///    device.
/// 2. Make the frees that waited for this work.
/// 3. Trim all pools of the device: pages scattered between blocks go back, and return as one range.
/// 4. Try once more.
/// 5. Report how much is held.
///
/// **Trims.** The driver reports only reserved and used bytes, so the reasons why memory stays are deduced. If the
/// target is reached, the memory was kept on purpose. If the trim waited for all work, the memory shares a page with a
/// block in use. Otherwise its free is assumed to be incomplete, though some of it may share pages too. While the host
/// waits, the driver itself gives back what is above the release threshold; that counts as returned.
/// `Σ left = reserved`, if nobody allocates meanwhile.
///
/// **Threads.** Any.
final class AsyncDevice {
    final int device;
    final DevicePools pools;
    final DeferredFrees later;
    final FreesUnderWay frees = new FreesUnderWay();
    private final EndedStreams ended;
    private final FailedFrees refused;
    private final CudaDriver driver;
    private final MemoryPools memory;
    private final DeviceReserves reserves;
    private final AsyncOptions options;

    // Weakly consistent while they grow.
    private final LongAdder retries = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final LongAdder synchronisations = new LongAdder();
    private final LongAdder trims = new LongAdder();
    private final LongAdder trimmedBytes = new LongAdder();

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
    private final Runnable awaiting = this::awaitAll;
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
        this.options = options;
        this.pools = new DevicePools(driver, device, options);
        this.closingPools = pools::close;
        this.lasting = options.adaptive();
        this.eventful = lasting;
        this.refused = new FailedFrees(memory, driver.graphs(), device);
        this.later = new DeferredFrees(device, order, this::freeLater);
        this.ended = new EndedStreams(device, order);
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

    /// Allocates after a refusal, once memory that frees have left is given back.
    ///
    /// @throws DeviceOutOfMemoryException if there is none
    long allocateOnceMore(long byteSize, long stream) {
        long mostBytes = options.location().onDevice() ? driver.devices().totalBytes(device) : Long.MAX_VALUE;
        if (byteSize > mostBytes) {
            failed.increment();
            throw DeviceOutOfMemoryException.aboveDevice(byteSize, device, mostBytes);
        }
        if (isAboveMaximum(byteSize)) {
            failed.increment();
            throw DeviceOutOfMemoryException.aboveLimit(
                    byteSize, device, "max_size is " + ByteSizes.exact(options.maxBytes()) + ": request less");
        }
        retries.increment();
        boolean waited = synchronize();
        long returned = trim(0);
        try {
            return allocateFrom(poolFor(byteSize, stream), byteSize, stream);
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.OUT_OF_MEMORY) {
                throw failure;
            }
            failed.increment();
            throw new DeviceOutOfMemoryException(byteSize, device, detail(waited, returned), failure);
        }
    }

    /// Returns whether a request is larger than a pool may become. The driver rounds the maximum up to whole pages.
    private boolean isAboveMaximum(long byteSize) {
        return options.maxBytes() != 0
                && Math.ceilDiv(byteSize, DriverPool.PAGE_BYTES)
                        > Math.ceilDiv(options.maxBytes(), DriverPool.PAGE_BYTES);
    }

    private String detail(boolean waited, long returned) {
        long reserved = pools.sum(PoolAttribute.RESERVED_CURRENT);
        long used = pools.sum(PoolAttribute.USED_CURRENT);
        return "async has " + ByteSizes.exact(reserved) + " reserved, of which " + used + " are allocated and "
                + Math.max(0, reserved - used) + " are idle between them; tried: "
                + (waited ? "synchronising and trimming" : "trimming without waiting, since a capture runs")
                + "; that returned " + ByteSizes.exact(returned);
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

    /// Keeps a free that the driver refused, for a retry.
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

    /// Handles the end of a stream. Frees that begin from now on do not name it, and those under way are
    /// waited for, so what is kept for it is complete.
    void streamClosing(long stream) {
        if (pools.all().length > 0) {
            becomeEventful();
            ended.closing(stream);
            frees.await();
        }
        long name = oneName(stream);
        later.streamClosing(name);
        refused.streamClosing(stream);
        pools.streamClosing(name);
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
        synchronisations.increment();
        long waiting = later.sealAll();
        long before = refused.latest();
        driver.devices().synchronize(device);
        boolean some = later.free(waiting);
        some |= refused.freeAgain(before);
        if (some) {
            driver.devices().synchronize(device);
        }
    }

    TrimResult trim(long keepBytes, TrimMode mode) {
        long held = pools.sum(PoolAttribute.RESERVED_CURRENT);
        boolean waited = mode == TrimMode.SYNCHRONIZE && pools.all().length > 0 && synchronize();
        long byDriver = Math.max(0, held - pools.sum(PoolAttribute.RESERVED_CURRENT));
        long returned = byDriver + trim(keepBytes);
        long reserved = pools.sum(PoolAttribute.RESERVED_CURRENT);
        long used = Math.min(reserved, pools.sum(PoolAttribute.USED_CURRENT));
        long waiting = Math.min(used, later.waitingBytes());
        List<Left> left = new ArrayList<>();
        add(left, Reason.IN_USE, used - waiting);
        add(left, Reason.USED_BY_OTHER_STREAM, waiting);
        Reason ofRest = waited ? Reason.SHARED_WITH_USED : Reason.IN_FLIGHT;
        add(left, reserved <= keepBytes ? Reason.KEPT : ofRest, reserved - used);
        return new TrimResult(returned, OptionalLong.of(reserved), left);
    }

    private static void add(List<Left> left, Reason reason, long byteSize) {
        if (byteSize > 0) {
            left.add(new Left(reason, OptionalLong.empty(), byteSize));
        }
    }

    /// Gives back idle memory, pool after pool, until at most `keepBytes` are reserved; waits for nothing. It
    /// also gives back memory that an adaptive threshold no longer holds and, if `keepBytes` is 0, memory that
    /// the driver keeps for graphs, which no other caller trims once the graphs are gone.
    long trim(long keepBytes) {
        later.freePassed();
        long returned = pools.giveBackUnheld();
        long excess = pools.sum(PoolAttribute.RESERVED_CURRENT) - keepBytes;
        for (DriverPool pool : pools.all()) {
            long went = pool.giveBack(excess);
            returned += went;
            excess -= went;
        }
        if (keepBytes == 0 && driver.devices().isUsed(device)) {
            returned += GraphAllocations.trim(driver, device, 0);
        }
        trims.increment();
        trimmedBytes.add(returned);
        return returned;
    }

    /// Returns the figures by name: PyTorch's, as far as the driver knows them, and Cistern's own.
    ///
    /// | name | meaning |
    /// |---|---|
    /// | `allocated_bytes.all`, `active_bytes.all` | bytes that the pools have allocated, by their own account |
    /// | `reserved_bytes.all` | bytes that the pools hold |
    /// | `num_alloc_retries`, `num_ooms`, `num_sync_all_streams` | as PyTorch counts them |
    /// | `pool.count` | pools in use |
    /// | `pool.release_threshold_bytes` | bytes that each pool keeps at a synchronisation |
    /// | `pool.trims`, `pool.trimmed_bytes` | trims, and the bytes that they gave back |
    /// | `pool.waiting_bytes` | bytes of freed blocks that other streams may still use |
    ///
    /// The figures of another owner's pool include what others allocate there. Peaks of several pools are added up,
    /// though they may fall at different times; in a pool of others they start where its owner last reset them.
    Map<String, Long> statistics() {
        pools.figuresAreRead();
        Map<String, Long> figures = new LinkedHashMap<>();
        put(figures, "allocated_bytes.all", PoolAttribute.USED_CURRENT, PoolAttribute.USED_HIGH);
        put(figures, "active_bytes.all", PoolAttribute.USED_CURRENT, PoolAttribute.USED_HIGH);
        put(figures, "reserved_bytes.all", PoolAttribute.RESERVED_CURRENT, PoolAttribute.RESERVED_HIGH);
        figures.put("num_alloc_retries", retries.sum());
        figures.put("num_ooms", failed.sum());
        figures.put("num_sync_all_streams", synchronisations.sum());
        DriverPool[] open = pools.all();
        figures.put("pool.count", (long) open.length);
        if (open.length > 0) {
            long threshold = open[0].attribute(PoolAttribute.RELEASE_THRESHOLD);
            figures.put("pool.release_threshold_bytes", threshold < 0 ? Long.MAX_VALUE : threshold); // unsigned
        }
        figures.put("pool.trims", trims.sum());
        figures.put("pool.trimmed_bytes", trimmedBytes.sum());
        figures.put("pool.waiting_bytes", later.waitingBytes());
        return figures;
    }

    private void put(Map<String, Long> figures, String name, PoolAttribute current, PoolAttribute high) {
        figures.put(name + ".current", pools.sum(current));
        figures.put(name + ".peak", pools.sum(high));
    }

    void resetTotals() {
        for (LongAdder count : List.of(retries, failed, synchronisations, trims, trimmedBytes)) {
            count.reset();
        }
    }

    /// Needs no Java heap of its own.
    ///
    /// @throws CudaException if a capture forbids the wait; then nothing is closed
    private void close() {
        if (pools.all().length > 0) {
            failures.gatherUnlessCaptured(awaiting);
            for (int tries = 1;
                    tries < DeadContext.MOST_TRIES && later.waitingBytes() + refused.latest() > 0;
                    tries++) {
                failures.gatherUnlessCaptured(awaiting); // no later call makes the frees that are left
            }
            failures.gather(closingPools);
            ended.close();
            failures.rethrow();
        }
    }

    private void awaitAll() {
        DeadContext.survive(synchronizing);
    }
}
