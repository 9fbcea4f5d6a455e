package io.cistern.pressure;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Failures;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Holds buffers that leave their device when its memory is needed: they move to pinned host memory, and
/// from there to files. Of the buffers that nobody uses, the one with the lowest priority leaves first; of
/// buffers with equal priority, the least recently used one.
///
/// ```java
/// SpillStore store = SpillStore.open(memory, arbiter, 8L << 30, Path.of("/scratch"));
/// SpillableBuffer table = store.allocate(bytes, device, stream, priority);
/// ```
///
/// The store spills buffers in three cases: when an allocation through its arbiter is refused; when any
/// other allocator has tried everything but waiting ([ReclaimStep#SPILL]); and when the program calls
/// [#spill], for example in a listener of a [threshold][io.cistern.Listeners#onThreshold].
///
/// Files are written and read in pieces of up to 1 MiB. Between device and file, a piece goes through
/// pinned memory that counts towards the limit of host memory. If the limit is used up, it goes through
/// ordinary memory. If the process is killed, its files stay in the directory.
///
/// **Interrupts** do not stop a move; the thread stays interrupted.
///
/// **Threads.** Any thread may call any method at any time.
public final class SpillStore implements RoomMaker, AutoCloseable {
    private static final System.Logger LOG = System.getLogger(SpillStore.class.getName());

    private final DeviceMemory memory;
    private final @Nullable TaskArbiter arbiter;
    private final HostMemory host;
    private final @Nullable Path directory;
    private final SpillCounts counts = new SpillCounts();
    private final Set<SpillableBuffer> buffers = ConcurrentHashMap.newKeySet();
    private final Map<Integer, SpillDevice> devices = new ConcurrentHashMap<>();
    private final SpillOrder onHost = new SpillOrder();
    private final AtomicLong clock = new AtomicLong();
    private volatile boolean closed;
    private Registration leaveLadder = () -> {};

    private SpillStore(DeviceMemory memory, @Nullable TaskArbiter arbiter, long hostBytes, @Nullable Path directory) {
        if (hostBytes < 0) {
            throw new IllegalArgumentException("hostBytes is negative: " + hostBytes);
        }
        this.memory = memory;
        this.arbiter = arbiter;
        this.host = new HostMemory(memory.driver(), memory.moduleSupport().streams(), hostBytes);
        this.directory = directory;
    }

    /// Opens a store that spills to host memory and files, and that answers an arbiter's refusals.
    ///
    /// @param memory the device memory; buffers come from its current allocator, or from that of the
    ///     thread's scope. Tasks get [RetryOom] only if that allocator is the arbiter
    /// @param arbiter the arbiter whose refusals the store answers
    /// @param hostBytes the most bytes of pinned host memory that the store takes, at least 0
    /// @param directory an existing directory for the files of spilled buffers. It is not checked here: if a
    ///     file can't be written, its buffer stays where it is, and a warning is logged
    /// @throws IllegalArgumentException if `hostBytes` is negative
    public static SpillStore open(DeviceMemory memory, TaskArbiter arbiter, long hostBytes, Path directory) {
        return new SpillStore(memory, arbiter, hostBytes, directory).opened();
    }

    /// Opens a store that spills to host memory only; otherwise like
    /// [#open(DeviceMemory, TaskArbiter, long, Path)].
    public static SpillStore open(DeviceMemory memory, TaskArbiter arbiter, long hostBytes) {
        return new SpillStore(memory, arbiter, hostBytes, null).opened();
    }

    /// Opens a store without an arbiter; otherwise like [#open(DeviceMemory, TaskArbiter, long, Path)].
    public static SpillStore open(DeviceMemory memory, long hostBytes, Path directory) {
        return new SpillStore(memory, null, hostBytes, directory).opened();
    }

    private SpillStore opened() {
        if (arbiter != null) {
            arbiter.addRoomMaker(this);
        }
        leaveLadder = memory.listeners().onMemoryPressure(ReclaimStep.SPILL, this::spill);
        return this;
    }

    /// Allocates a buffer on a device. Its bytes are undefined.
    ///
    /// @param byteSize at least 1
    /// @param device the device's ordinal
    /// @param stream a stream of the device, in whose order the buffer is allocated
    /// @param priority buffers with a higher priority leave their device later
    /// @return the buffer; closing it frees it
    /// @throws IllegalArgumentException if `byteSize` is less than 1
    /// @throws IllegalStateException if the store is closed
    /// @throws DeviceOutOfMemoryException for the reasons of [DeviceMemory#allocate]; in a task, [RetryOom]
    ///     or [SplitAndRetryOom] instead
    public SpillableBuffer allocate(long byteSize, int device, long stream, int priority) {
        if (byteSize < 1) {
            throw new IllegalArgumentException("byteSize: " + byteSize + ", must be at least 1");
        }
        SpillableBuffer buffer = new SpillableBuffer(this, device(device), byteSize, device, stream, priority);
        boolean opened = false;
        try {
            buffers.add(buffer);
            long address = memory.allocate(byteSize, device, stream);
            if (!buffer.opened(address, stream)) {
                memory.free(address, stream);
                throw isClosedNow();
            }
            opened = true;
            return buffer;
        } finally {
            if (!opened) {
                buffer.close();
                closeDevices(); // a close that ran meanwhile left the device to this buffer
            }
        }
    }

    /// Allocates a buffer for use on a stream: see [#allocate(long, int, long, int)].
    public SpillableBuffer allocate(long byteSize, CudaStream stream, int priority) {
        return allocate(byteSize, stream.device(), stream.handle(), priority);
    }

    /// Under a lock, so that no stream is created once the store is closed.
    private SpillDevice device(int device) {
        synchronized (devices) {
            if (closed) {
                throw isClosedNow();
            }
            return devices.computeIfAbsent(device, _ -> new SpillDevice(memory, device));
        }
    }

    private static IllegalStateException isClosedNow() {
        return new IllegalStateException("the spill store is closed; allocate from one that is open");
    }

    boolean isClosed() {
        return closed;
    }

    /// Moves buffers off a device; none if the store is closed.
    ///
    /// @param device the device's ordinal
    /// @param byteSize stops once this many bytes have left
    /// @return the bytes that have left; less than `byteSize` if the remaining buffers are in use, or if
    ///     host memory and files have no room for them
    public long spill(int device, long byteSize) {
        SpillDevice from = devices.get(device);
        if (closed || from == null) {
            return 0;
        }
        long left = 0;
        int inVain = 0;
        for (SpillableBuffer buffer : from.order()) {
            if (left >= byteSize || inVain > buffers.size()) { // buffers used meanwhile re-enter
                break;
            }
            long freed = memory.moduleSupport().whileNothingMoves(buffer::leaveDevice, 0L);
            left += freed;
            inVain += freed == 0 ? 1 : 0;
        }
        return left;
    }

    /// Moves buffers off the device, to make room for the refused request.
    @Override
    public boolean makeRoom(DeviceOutOfMemoryException failure) {
        return spill(failure.device(), failure.byteSize()) > 0;
    }

    /// Returns the order in which buffers leave a place; null if they stay there.
    @Nullable
    SpillOrder order(SpillPlace place, SpillDevice device) {
        return switch (place) {
            case DEVICE -> device.order();
            case HOST -> onHost;
            case FILE, CLOSED -> null;
        };
    }

    /// Takes host memory for a buffer, if necessary by moving other buffers to files; returns null if there is
    /// none.
    HostMemory.@Nullable Block takeHost(int device, long byteSize) {
        HostMemory.Block taken = host.take(device, byteSize);
        if (taken != null || directory == null || !host.canHold(byteSize)) {
            return taken;
        }
        for (SpillableBuffer buffer : onHost) {
            if (buffer.leaveHost()) {
                taken = host.take(device, byteSize);
                if (taken != null) {
                    return taken;
                }
            }
        }
        return null;
    }

    /// Returns the bytes at each place, and the moves so far.
    public SpillStatistics statistics() {
        return counts.statistics();
    }

    DeviceMemory memory() {
        return memory;
    }

    CudaDriver driver() {
        return memory.driver();
    }

    HostMemory host() {
        return host;
    }

    @Nullable
    Path directory() {
        return directory;
    }

    long tick() {
        return clock.incrementAndGet();
    }

    void moved(SpillPlace from, SpillPlace to, long byteSize) {
        counts.moved(from, to, byteSize);
    }

    void forget(SpillableBuffer buffer) {
        buffers.remove(buffer);
    }

    void spillable(int device, long byteSize) {
        if (arbiter != null) {
            arbiter.roomCanBeMade(device, byteSize);
        }
    }

    void failed(String what, Exception why) {
        counts.failed();
        warn(what, why);
    }

    void warn(String what, Exception why) {
        LOG.log(System.Logger.Level.WARNING, what + ": " + why);
    }

    /// Closes all buffers and deletes their files. Waits for copies under way. A closed store allocates
    /// nothing.
    ///
    /// @throws IllegalStateException if a buffer has open leases; that buffer stays open, and another close
    ///     closes it
    /// @throws RuntimeException the first failure, with the others suppressed in it; everything else is
    ///     closed even then. Call this method again for the rest
    @Override
    public void close() {
        synchronized (devices) {
            closed = true;
        }
        leaveLadder.close();
        if (arbiter != null) {
            arbiter.removeRoomMaker(this);
        }
        Failures failures = new Failures();
        buffers.forEach(buffer -> failures.gather(buffer::close));
        failures.gather(this::closeDevices);
        failures.gather(host::drain);
        failures.rethrow();
    }

    /// Closes the devices that no buffer uses any more; none before the store is closed.
    private void closeDevices() {
        if (!closed) {
            return;
        }
        Failures failures = new Failures();
        for (SpillDevice each : List.copyOf(devices.values())) {
            int device = each.own().device();
            Runnable awaiting = each::await;
            Runnable closing = () -> closeStream(device, each);
            if (buffers.stream().noneMatch(open -> open.isAt(each)) && devices.remove(device, each)) {
                failures.gather(awaiting);
                failures.gather(closing);
            }
        }
        failures.rethrow();
    }

    /// Closes a device's stream; if that fails, a later call retries.
    private void closeStream(int device, SpillDevice each) {
        boolean done = false;
        try {
            each.own().close();
            done = true;
        } finally {
            if (!done) {
                devices.put(device, each);
            }
        }
    }
}
