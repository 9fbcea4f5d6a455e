package io.cistern;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.Failures;
import io.cistern.internal.reclaim.OutOfMemoryHandler;
import io.cistern.internal.reclaim.ProgramPause;
import io.cistern.internal.reclaim.ThresholdNotifier;
import io.cistern.internal.routing.Route;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Registers listeners of one [DeviceMemory]. [DeviceMemory#listeners] returns this object.
///
/// **Threads.** Any thread may call any method at any time.
public final class Listeners {
    private final OutOfMemoryHandler outOfMemory;
    private final ThresholdNotifier notifier;
    private final Observers observers;
    private final int deviceCount;
    private final List<StreamClosing> streamListeners = new CopyOnWriteArrayList<>();

    Listeners(OutOfMemoryHandler outOfMemory, ThresholdNotifier notifier, Observers observers, int deviceCount) {
        this.observers = observers;
        this.outOfMemory = outOfMemory;
        this.notifier = notifier;
        this.deviceCount = deviceCount;
    }

    /// Frees memory, for example of a cache, when a device has none left for a request or a limit refuses
    /// the request. It is called on the thread that requests memory, on several threads at once if several
    /// request memory, and under no lock of Cistern. It may wait for other threads, allocate and free, but
    /// its own requests call no listener.
    @FunctionalInterface
    public interface MemoryPressure {
        /// Frees memory that the program can spare. If this method throws an exception, the request fails
        /// with that exception and is not retried.
        ///
        /// @param device the device
        /// @param byteSize bytes to free, at least 1
        /// @return the bytes that were freed; 0 if there was nothing to spare
        long free(int device, long byteSize);
    }

    /// Called when the memory in use rises above a [threshold][#onThreshold].
    @FunctionalInterface
    public interface Threshold {
        /// Handles the rise. It is called on a thread of Cistern, outside all locks, and may allocate,
        /// free, trim and wait. That thread calls all listeners for thresholds and budgets, one at a time.
        /// Exceptions are logged.
        ///
        /// @param device the device
        /// @param thresholdBytes the threshold
        /// @param byteSize bytes in use when the call begins; less than the threshold if memory has been
        ///     freed since, or if the call came a little early ([MemoryMeasure])
        void above(int device, long thresholdBytes, long byteSize);
    }

    /// Called when the driver reports that this process uses more memory of a device than its
    /// [budget][#onOverBudget].
    @FunctionalInterface
    public interface OverBudget {
        /// Handles the excess, for example by trimming. It is called like [Threshold#above].
        ///
        /// @param device the device
        /// @param bytesOverBudget the excess that the driver reported last, in bytes
        void overBudget(int device, long bytesOverBudget);
    }

    /// The program's promise to launch no work for a while. Only such a pause lets live memory move.
    ///
    /// [Compaction][ReclaimStep#COMPACTION] replaces the pages under live blocks. For a moment, nothing is
    /// mapped at an address, and work that uses the address at that moment makes the context unusable. Only
    /// the program knows which threads launch work. So this contract holds for refused requests and for
    /// [Allocator#compact] alike:
    ///
    /// 1. **Without a registered pause nothing moves.** The error of a refused request says how much
    ///    compaction could have freed.
    /// 2. **During a pause no thread launches work** on memory of Cistern: no kernel, copy, fill or graph, on
    ///    any stream, by any library. The thread that compacts waits for all work that was launched before, so
    ///    that work must not depend on a paused thread. Threads may allocate and free. Copies that Cistern
    ///    itself makes, for example to spill, wait for the end of the pause.
    /// 3. **A thread that waits inside an allocation counts as paused.** It may wait for its turn to
    ///    reclaim, for frees of other threads, for the end of a pause, or, as part of a task, for other
    ///    tasks. Before it waits, it calls [#rest] of each registered pause. The thread that compacts does
    ///    the same before it begins the pauses.
    /// 4. **The wait has a bound.** If [#begin] does not pause the program in time, nothing moves. If the
    ///    request is then refused, the error gives this reason.
    ///
    /// A pause may take locks that threads hold while they launch work. If threads also hold these locks
    /// while they allocate, [#rest] must release them. Otherwise, the pause and such a thread wait for each
    /// other until the bound is reached. [#of] returns a pause that does all this for a lock.
    ///
    /// A pool that [sleeps][MemoryPool#sleep] needs no pause: by that call the program itself promises to
    /// launch no work on the pool's memory.
    @FunctionalInterface
    public interface WorkPause {
        /// Stops the other threads from launching work on a device. It is called on the thread that
        /// compacts, under no lock of Cistern, one call at a time for a device memory. It may take locks
        /// and free memory; requests that it makes are served without compaction. If it throws an
        /// exception, nothing moves.
        ///
        /// @param device the device
        /// @param atMost how long the call may wait: at most a few seconds; a pause should need only
        ///     milliseconds
        /// @return a registration; closing it ends the pause. Empty if the program can't pause in time
        Optional<Registration> begin(int device, Duration atMost);

        /// Releases everything that the calling thread holds and [#begin] may wait for, such as a lock. It
        /// is called on a thread of the program that is about to wait inside an allocation or
        /// [Allocator#compact], under no lock of Cistern. As with
        /// [java.util.concurrent.locks.Condition#await], other threads may acquire the lock during the
        /// wait. The default does nothing, which is right if threads hold no such lock while they allocate.
        ///
        /// @return a registration, which the same thread closes after the wait; closing it reacquires
        ///     everything that was released
        default Registration rest() {
            return () -> {};
        }

        /// Returns the pause of a program in which a single thread allocates and launches all work. While that
        /// thread is in an allocation, the program is paused, so there is nothing to stop.
        static WorkPause ofOneThread() {
            return (_, _) -> Optional.of(() -> {});
        }

        /// Returns a pause that takes the exclusive side of a lock. Threads hold either side while they
        /// launch work. They may hold it while they allocate: a thread that waits inside an allocation
        /// releases all its holds, and reacquires them after the wait.
        static WorkPause of(ReentrantReadWriteLock work) {
            return new LockPause(work);
        }
    }

    /// Takes the exclusive side of a lock. A thread that [rests][#rest] releases all its holds.
    private record LockPause(ReentrantReadWriteLock work) implements WorkPause {
        @Override
        public Optional<Registration> begin(int device, Duration atMost) {
            Optional<Registration> end = Optional.of(work.writeLock()::unlock); // before the lock is held
            return isTaken(atMost) ? end : Optional.empty();
        }

        private boolean isTaken(Duration atMost) {
            try {
                return work.writeLock().tryLock(atMost.toNanos(), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return work.writeLock().tryLock();
            }
        }

        @Override
        public Registration rest() {
            int shared = work.getReadHoldCount();
            int exclusive = work.getWriteHoldCount();
            Registration end = () -> {
                lock(work.writeLock(), exclusive); // first: the shared side can't be upgraded to it
                lock(work.readLock(), shared);
            };
            unlock(work.readLock(), shared);
            unlock(work.writeLock(), exclusive);
            return end;
        }

        private static void unlock(Lock side, int times) {
            for (int i = 0; i < times; i++) {
                side.unlock();
            }
        }

        private static void lock(Lock side, int times) {
            for (int i = 0; i < times; i++) {
                side.lock();
            }
        }
    }

    /// Called when a stream [ends][DeviceMemory#streamClosing].
    @FunctionalInterface
    public interface StreamClosing {
        /// Releases everything that the program keeps for a stream. It is called on the thread that announces
        /// the end, outside all locks, while the stream still exists.
        ///
        /// @param device the stream's device
        /// @param stream a `CUstream`
        void closing(int device, long stream);
    }

    /// Calls a listener whenever a device has no memory for a request or a limit refuses it, before the
    /// request fails, in the step [ReclaimStep#CALLBACKS].
    ///
    /// @return a registration; closing it removes the listener
    public Registration onMemoryPressure(MemoryPressure listener) {
        return onMemoryPressure(ReclaimStep.CALLBACKS, listener);
    }

    /// Calls a listener whenever a device has no memory for a request or a limit refuses it, in one of two
    /// steps.
    ///
    /// @param step [ReclaimStep#CALLBACKS] for memory that the program can spare. [ReclaimStep#SPILL] for
    ///     memory that is moved elsewhere and will be needed again; this step comes after the idle memory
    ///     of all allocators. If the listeners of `SPILL` free as many bytes as requested and the request
    ///     still finds no room, they are called again for twice as many, and so on
    /// @return a registration; closing it removes the listener
    /// @throws IllegalArgumentException if `step` is another step
    public Registration onMemoryPressure(ReclaimStep step, MemoryPressure listener) {
        return outOfMemory.add(step, listener::free)::run;
    }

    /// Lets [compaction][ReclaimStep#COMPACTION] move live memory while the program pauses. [WorkPause]
    /// describes the contract. If several pauses are registered, live memory moves only after all of them
    /// have begun.
    ///
    /// @return a registration; closing it removes the pause
    public Registration onCompaction(WorkPause pause) {
        return outOfMemory.pause().add(new ProgramPause.Pause() {
            @Override
            public @Nullable Runnable begin(int device, Duration atMost) {
                Registration end = pause.begin(device, atMost).orElse(null);
                return end == null ? null : end::close;
            }

            @Override
            public Runnable rest() {
                return pause.rest()::close;
            }
        })::run;
    }

    /// Calls a listener when the memory in use on a device, by all allocators and pools together, rises
    /// above a threshold. It is called once for each rise, and immediately if the use is already above the
    /// threshold. A call that came early ([MemoryMeasure]) is not repeated when the threshold is passed. A
    /// pending call covers all rises until it begins; rises during a call lead to one more call.
    ///
    /// Thresholds are checked when a thread renews its byte lease, every few MiB, and when an allocator
    /// obtains memory or gives it back. So most allocations do not pay for them.
    ///
    /// @param byteSize the threshold in bytes, at least 0
    /// @return a registration; closing it removes the listener, and a call in progress may continue
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public Registration onThreshold(int device, MemoryMeasure measure, long byteSize, Threshold listener) {
        return onThreshold(device, measure, byteSize, null, listener);
    }

    Registration onThreshold(
            int device, MemoryMeasure measure, long byteSize, @Nullable Route only, Threshold listener) {
        return notifier.onThreshold(
                Devices.check(device, deviceCount),
                measure == MemoryMeasure.RESERVED,
                byteSize,
                only,
                bytes -> listener.above(device, byteSize, bytes))::run;
    }

    /// Calls a listener when the driver reports that this process uses more memory of a device than its
    /// budget (`cuDeviceRegisterAsyncNotification`, CUDA 12.4). The operating system decides whether there
    /// are budgets.
    ///
    /// @return a registration; closing it removes the listener, and a call in progress may continue
    /// @throws io.cistern.cuda.CudaException [io.cistern.cuda.CudaResult#NOT_SUPPORTED] if the driver
    ///     doesn't report budgets; [io.cistern.cuda.DriverFeature#BUDGET_NOTIFICATION] has the reason
    /// @throws IndexOutOfBoundsException if there is no such device
    public Registration onOverBudget(int device, OverBudget listener) {
        return notifier.onOverBudget(Devices.check(device, deviceCount), bytes -> listener.overBudget(device, bytes))
                ::run;
    }

    /// Calls a listener whenever the end of a stream is [announced][DeviceMemory#streamClosing].
    ///
    /// @return a registration; closing it removes the listener
    public Registration onStreamClosing(StreamClosing listener) {
        return Registration.in(streamListeners, listener);
    }

    /// Registers an observer of every [event][MemoryEvent] from now on. Without observers, events cost nothing.
    ///
    /// Observers are called within the program's call, on several threads at once and outside all locks of
    /// allocators. An event comes after the events that led to it: for example, a block's event comes after
    /// that of its segment. An event arrives on the thread that caused it. The exception is an event that
    /// was caused under a lock, such as that of a segment: another thread may deliver it before an event of
    /// its own. Observers should be quick. An observer's exceptions change nothing for the program, and
    /// only the first is logged. No observer is notified of events that an observer causes in the same
    /// device memory.
    ///
    /// @return a registration; closing it removes the observer, and calls in progress may continue
    public Registration onEvent(Consumer<? super MemoryEvent> observer) {
        return observe(new Observers.Observer(observer, true));
    }

    /// Registers an observer of every event from now on, except of blocks that are
    /// [allocated][MemoryEvent.Allocated] and [freed][MemoryEvent.Freed]. Otherwise this is like
    /// [#onEvent], but it slows down allocations and frees far less.
    ///
    /// @return a registration; closing it removes the observer, and calls in progress may continue
    public Registration onRareEvent(Consumer<? super MemoryEvent> observer) {
        return observe(new Observers.Observer(observer, false));
    }

    private Registration observe(Observers.Observer observer) {
        // Created first, so that an added observer can always be removed.
        Registration registration = () -> observers.remove(observer);
        observers.add(observer);
        return registration;
    }

    /// Returns the number of [events][MemoryEvent] that were lost because the Java heap was full. The calls
    /// that caused them succeed or fail as they would without observers.
    public long lostEvents() {
        return observers.lost();
    }

    /// Reports a moment in the program, such as the start of a step, to the observers, so that it appears
    /// among the memory events.
    ///
    /// @param text a human-readable label for the moment
    public void annotate(String text) {
        if (observers.any()) {
            observers.tell(Events.ANNOTATED, text);
        }
    }

    void streamClosing(int device, long stream, Failures failures) {
        streamListeners.forEach(listener -> failures.gather(() -> listener.closing(device, stream)));
    }
}
