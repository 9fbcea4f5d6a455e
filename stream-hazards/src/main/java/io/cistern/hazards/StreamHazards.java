package io.cistern.hazards;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.hazards.MemoryUses.Side;
import io.cistern.hazards.StreamClocks.Stream;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.hazards.StreamHazard.Place;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Finds uses of memory that lack the necessary stream order. If the setting `cistern.check` is `streams`,
/// each device memory that is opened is watched.
///
/// **What it sees**: allocations and frees of every allocator, recorded uses, and all calls through the
/// [driver][DeviceMemory#driver] of the device memory: copies, fills, launches of
/// `io.cistern.buffers.CudaFunction`, events, waits, queries, captures and launches of graphs. Of a
/// kernel's arguments, it sees where pointers begin and how long buffers are. It also sees uses of pinned
/// host memory by streams. Work inside a capture is compared with the rest of the capture at once, and with
/// all other work at each launch.
///
/// **What must be declared**: work of code that calls CUDA itself ([#used]), the order that such code makes
/// ([#recorded], [#awaited], [#waitForStream] and others), and reads and writes of pinned or managed memory
/// by the host ([#touchedByHost]).
///
/// **What it does not see**: how two threads of the program wait for each other. Work that one thread has
/// seen finish counts as finished for all threads.
///
/// **What it reports.** Each pair of places in the program once, as `cistern.hazards` says: `warning` (the default)
/// logs it, `throw` makes the call fail with a [StreamHazardException], `list` only keeps it. A hazard found in an
/// allocation or a free is logged instead of thrown. Each hazard is also an event of Flight Recorder.
///
/// **Threads.** Any thread may call any method at any time.
public final class StreamHazards {
    private static final System.Logger LOGGER = System.getLogger(StreamHazards.class.getName());

    private static final int MOST = 1000;

    private enum Report {
        WARNING,
        THROW,
        LIST
    }

    private static final List<Consumer<StreamHazard>> ALL_LISTENERS = new CopyOnWriteArrayList<>();

    private record StreamName(int device, long handle) {}

    private final CudaDriver driver;

    /// Whether known streams wait for the legacy default stream. The driver is queried without the lock.
    private final Map<StreamName, Boolean> areBlocking = new ConcurrentHashMap<>();

    private final StreamClocks clocks;
    private final MemoryUses uses;
    private final Report report;
    private final List<StreamHazard> hazards = new ArrayList<>();
    private final Set<List<Object>> told = new HashSet<>();
    private final List<Consumer<StreamHazard>> listeners = new CopyOnWriteArrayList<>();

    /// Hazards that the step under way has found. Guarded by this.
    private final List<StreamHazard> fresh = new ArrayList<>();

    StreamHazards(CudaDriver driver) {
        this.driver = driver;
        this.clocks =
                new StreamClocks((device, stream) -> areBlocking.getOrDefault(new StreamName(device, stream), true));
        this.uses = new MemoryUses(clocks, this::found);
        this.report = Settings.ofProcess()
                .get(Setting.HAZARDS)
                .map(set -> Report.valueOf(set.word().toUpperCase(Locale.ROOT)))
                .orElse(Report.WARNING);
    }

    /// Returns the check that watches a device memory; empty if it was opened without
    /// `cistern.check=streams`.
    public static Optional<StreamHazards> of(DeviceMemory memory) {
        return memory.driver() instanceof WatchedDriver watched ? Optional.of(watched.hazards) : Optional.empty();
    }

    /// Returns whether `cistern.check=streams` is set, so that each device memory that the process opens is
    /// watched.
    public static boolean isSet() {
        return Settings.ofProcess()
                .get(Setting.CHECK)
                .filter(level -> level.text().equalsIgnoreCase("streams"))
                .isPresent();
    }

    /// Returns the hazards found so far, the earliest first: each pair of places once, and at most 1,000.
    public synchronized List<StreamHazard> list() {
        return List.copyOf(hazards);
    }

    /// Forgets the hazards found so far. A pair of places that is found again is reported again.
    public synchronized void clear() {
        hazards.clear();
        told.clear();
    }

    /// Calls a listener with each hazard that is reported, on the thread whose call revealed it. The
    /// listener runs before that call is made; for an allocation, after it. Exceptions of the listener are
    /// logged.
    ///
    /// @return a registration; closing it removes the listener
    public Registration onHazard(Consumer<StreamHazard> listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }

    /// Calls a listener with the hazards of all device memories, as [#onHazard] does.
    ///
    /// @return a registration; closing it removes the listener
    public static Registration onAnyHazard(Consumer<StreamHazard> listener) {
        ALL_LISTENERS.add(listener);
        return () -> ALL_LISTENERS.remove(listener);
    }

    /// Declares work that foreign code is about to enqueue. Foreign code is code that calls CUDA without
    /// Cistern. Call this before the launch.
    ///
    /// The bytes may begin anywhere in a block, live or freed, or in pinned memory; those beyond its end
    /// are ignored. Other addresses, such as those of memory that foreign code allocated, are not checked.
    ///
    /// @param device the stream's device
    /// @param stream the stream of the work
    /// @param address where the bytes begin
    /// @param byteSize how many bytes the work may read or write
    /// @param isWritten false if the work only reads them
    /// @throws IllegalArgumentException if the address is 0, or `byteSize` is below 1
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws StreamHazardException if a hazard is found and the setting `cistern.hazards` is `throw`
    public void used(int device, long stream, long address, long byteSize, boolean isWritten) {
        requireDevice(device);
        require(address != 0, "address is 0: the allocation failed, or was of 0 bytes");
        require(byteSize > 0, "byteSize is " + byteSize + ": declare at least 1 byte");
        work("work", device, stream, new Range(address, byteSize, isWritten));
    }

    /// Declares work on rows that foreign code is about to enqueue, as [#used] does. Call this before the
    /// launch.
    ///
    /// @param device the stream's device
    /// @param stream the stream of the work
    /// @param address where the first row begins
    /// @param pitch bytes from one row to the next
    /// @param width bytes of each row that the work may read or write
    /// @param rows number of rows
    /// @param isWritten false if the work only reads them
    /// @throws IllegalArgumentException if the address is 0, or `width`, `rows` or `pitch` is below 1
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws StreamHazardException if a hazard is found and the setting `cistern.hazards` is `throw`
    public void usedRows(int device, long stream, long address, long pitch, long width, long rows, boolean isWritten) {
        requireDevice(device);
        require(address != 0, "address is 0: the allocation failed, or was of 0 bytes");
        require(
                width > 0 && rows > 0 && pitch > 0,
                "width is " + width + ", rows is " + rows + ", pitch is " + pitch + ": each must be at least 1");
        work("work", device, stream, Range.rows(address, pitch, width, rows, isWritten));
    }

    /// Declares an event that foreign code is about to record.
    ///
    /// @param device the stream's device
    /// @param event the event
    /// @param stream the stream whose work so far the event marks
    public void recorded(int device, long event, long stream) {
        lookAt(device, stream);
        inTurn(() -> clocks.record(device, event, stream));
    }

    /// Declares that foreign code is about to make a stream wait for an event.
    ///
    /// @param device the stream's device
    /// @param stream the stream that waits
    /// @param event the event, recorded by any code
    public void awaited(int device, long stream, long event) {
        lookAt(device, stream);
        inTurn(() -> clocks.await(device, stream, event));
    }

    /// Declares that foreign code is about to wait for a stream on the host, or to query it.
    ///
    /// @param device the stream's device
    /// @return code to run once the wait has succeeded, or the query found the stream idle
    public Runnable waitForStream(int device, long stream) {
        lookAt(device, stream);
        Map<Stream, Long> work;
        synchronized (this) {
            work = clocks.upTo(device, stream);
        }
        return () -> finished(work);
    }

    /// Declares that foreign code is about to wait for an event on the host, or to query it.
    ///
    /// @return code to run once the wait has succeeded, or the query found that the event has passed
    public synchronized Runnable waitForEvent(long event) {
        Map<Stream, Long> work = clocks.upTo(event);
        return () -> finished(work);
    }

    /// Declares that foreign code is about to wait for a whole device on the host.
    ///
    /// @return code to run once the wait has succeeded
    public synchronized Runnable waitForDevice(int device) {
        Map<Stream, Long> work = clocks.upTo(device);
        return () -> finished(work);
    }

    /// Declares that foreign code destroyed an event.
    public void eventDestroyed(long event) {
        inTurn(() -> clocks.destroyed(event));
    }

    /// Declares that foreign code destroyed a stream. Its work may still run.
    ///
    /// @param device the stream's device
    public void streamDestroyed(int device, long stream) {
        inTurn(() -> clocks.ended(device, stream));
        areBlocking.remove(new StreamName(device, stream));
    }

    /// Checks that the host may read or write pinned or managed memory. Call this before the access. All
    /// work that uses the bytes must be known to have finished, through a synchronisation or a query of its
    /// stream or of a later event.
    ///
    /// @param memory the bytes
    /// @param isWritten false if the host only reads them
    /// @throws StreamHazardException if a hazard is found and the setting `cistern.hazards` is `throw`
    public void touchedByHost(MemorySegment memory, boolean isWritten) {
        Range range = new Range(memory.address(), memory.byteSize(), isWritten);
        inTurn(true, () -> uses.touched(range));
    }

    private void requireDevice(int device) {
        int count = driver.devices().count();
        if (device < 0 || device >= count) {
            throw new IndexOutOfBoundsException("there is no device " + device + ": the driver has " + count);
        }
    }

    private static void require(boolean isValid, String otherwise) {
        if (!isValid) {
            throw new IllegalArgumentException(otherwise);
        }
    }

    private void lookAt(int device, long stream) {
        if (stream <= Streams.PER_THREAD_DEFAULT || clocks.isRecent(device, stream)) {
            return;
        }
        StreamName name = new StreamName(device, stream);
        if (!areBlocking.containsKey(name)) {
            try {
                areBlocking.put(name, driver.streams().isBlocking(device, stream));
            } catch (CudaException untold) {
                areBlocking.put(name, true);
            }
        }
    }

    /// Checks and records work that is about to be enqueued.
    void work(String call, int device, long stream, Range... ranges) {
        lookAt(device, stream);
        if (ranges.length == 0) {
            inTurn(true, () -> clocks.next(device, stream));
            return;
        }
        Call place = new Call(call);
        inTurn(true, () -> {
            Stream on = clocks.next(device, stream);
            for (Range range : ranges) {
                if (range.byteSize() == 0) {
                    continue;
                }
                if (on.capture != null && on.captured != null) {
                    uses.captured(on.capture, on.captured, range, place);
                } else {
                    uses.used(on, range, place, false);
                }
            }
        });
    }

    void launched(int device, long stream, Capture graph) {
        lookAt(device, stream);
        inTurn(true, () -> {
            Stream on = clocks.next(device, stream);
            if (on.capture == null) {
                graph.uses.forEach(each -> uses.used(on, each.range(), each.call(), true));
            }
        });
    }

    void follow(MemoryEvent event) {
        switch (event) {
            case MemoryEvent.Allocated block -> follow(block);
            case MemoryEvent.Freed block -> follow(block);
            case MemoryEvent.UseRecorded use -> {
                lookAt(use.device(), use.stream());
                inTurn(() -> uses.recorded(clocks.stream(use.device(), use.stream()), use.address()));
            }
            case MemoryEvent.SegmentAcquired segment -> inTurn(() -> uses.anew(segment.address(), segment.byteSize()));
            default -> {}
        }
    }

    private void follow(MemoryEvent.Allocated block) {
        lookAt(block.device(), block.stream());
        Call call = new Call("allocate", block.endNanos());
        inTurn(() ->
                uses.allocated(clocks.next(block.device(), block.stream()), block.address(), block.byteSize(), call));
    }

    /// The allocator itself waits for the whole device if the stream has ended.
    private void follow(MemoryEvent.Freed block) {
        boolean hasEnded = clocks.hasEnded(block.device(), block.stream());
        if (!hasEnded) {
            lookAt(block.device(), block.stream());
        }
        Call call = new Call("free");
        inTurn(() -> uses.freed(
                hasEnded
                        ? clocks.afterAll(block.device(), block.stream())
                        : clocks.joined(block.device(), block.stream()),
                block.address(),
                call));
    }

    void recordAll(int device, long event) {
        inTurn(() -> clocks.recordAll(device, event));
    }

    private void finished(Map<Stream, Long> work) {
        inTurn(() -> clocks.finished(work));
    }

    void begins(int device, long stream) {
        lookAt(device, stream);
        inTurn(() -> clocks.begins(new Capture(), device, stream));
    }

    synchronized @Nullable Capture ends(int device, long stream) {
        return clocks.ends(device, stream);
    }

    void uses(Consumer<MemoryUses> step) {
        inTurn(() -> step.accept(uses));
    }

    private void inTurn(Runnable step) {
        inTurn(false, step);
    }

    /// Runs a step under the lock, then reports the hazards that it found, without the lock.
    ///
    /// @param isCall whether the call may fail
    private void inTurn(boolean isCall, Runnable step) {
        List<StreamHazard> found;
        synchronized (this) {
            step.run();
            if (fresh.isEmpty()) {
                return;
            }
            found = List.copyOf(fresh);
            fresh.clear();
        }
        boolean isThrown = isCall && report == Report.THROW;
        for (StreamHazard hazard : found) {
            StreamHazardEvent.commit(hazard);
            tell(listeners, hazard);
            tell(ALL_LISTENERS, hazard);
            if (report != Report.LIST && !isThrown) {
                LOGGER.log(Level.WARNING, hazard.toString());
            }
        }
        if (isThrown) {
            throw new StreamHazardException(found.getFirst());
        }
    }

    private static void tell(List<Consumer<StreamHazard>> listeners, StreamHazard hazard) {
        for (Consumer<StreamHazard> listener : listeners) {
            try {
                listener.accept(hazard);
            } catch (RuntimeException | LinkageError failure) {
                LOGGER.log(Level.WARNING, "a hazard listener failed", failure);
            }
        }
    }

    private void found(Kind kind, Side earlier, Side later, int device, Range range) {
        if (hazards.size() >= MOST) {
            return;
        }
        Place first = earlier.place();
        Place second = later.place();
        if (told.add(List.of(kind, first.call(), first.line(), second.call(), second.line()))) {
            StreamHazard hazard = new StreamHazard(
                    kind, first, second, device, range.from(), range.byteSize(), advice(kind, earlier, later));
            hazards.add(hazard);
            fresh.add(hazard);
        }
    }

    private static String advice(Kind kind, Side first, Side second) {
        String one = nameOf(first, second);
        String other = nameOf(second, first);
        return switch (kind) {
            case USE_BEFORE_ALLOCATION ->
                "Let " + other + " wait for " + one + " before the second call (" + await(first) + "), or allocate on "
                        + other + ".";
            case RACE ->
                "Let " + other + " wait for " + one + " before the second call (" + await(first) + ")."
                        + (first.place().mayOnlyRead() || second.place().mayOnlyRead()
                                ? " If a kernel only reads the buffer, pass it with CudaFunction.readOnly."
                                : "");
            case FREE_BEFORE_USE_ENDS ->
                "Let " + other + " wait for " + one + " before the free (" + await(first) + "), or record the use"
                        + " before it (DeviceBuffer.recordUse).";
            case HOST_TOO_EARLY ->
                "Let the host first wait for " + one + " ("
                        + (isOfThread(first)
                                ? "an event that thread " + first.call().thread() + " records"
                                : "CudaStream.synchronize, or an event recorded")
                        + " after the first call).";
            case USE_AFTER_FREE -> "Free the block after its last use; a buffer that is closed must not be used.";
            case REUSED_TOO_EARLY ->
                "The allocator handed the memory to " + other + ", which does not wait for "
                        + (one.equals(other) && !isOfThread(first)
                                ? "an ended stream that had the same handle: streamClosing must reach the allocator"
                                        + " (AllocatorAdaptor passes it on), or the allocator reuses blocks that were freed"
                                        + " after the stream's end"
                                : one)
                        + ". If a use was not recorded before the free, record it; otherwise the allocator has a bug.";
        };
    }

    /// Returns whether the call is on a stream that only its thread can name.
    private static boolean isOfThread(Side side) {
        return side.stream() == Streams.PER_THREAD_DEFAULT;
    }

    /// Returns the name of a call's stream, with device and thread where the handle is ambiguous.
    private static String nameOf(Side side, Side other) {
        return "stream 0x" + Long.toHexString(side.stream())
                + (side.device() == other.device() ? "" : " of device " + side.device())
                + (isOfThread(side) ? " of thread " + side.call().thread() : "");
    }

    private static String await(Side side) {
        return isOfThread(side)
                ? "CudaStream.await of an event that thread " + side.call().thread() + " records"
                : "CudaStream.await, or cuEventRecord and cuStreamWaitEvent";
    }
}
