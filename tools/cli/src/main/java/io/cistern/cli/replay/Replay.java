package io.cistern.cli.replay;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cli.trace.Trace;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Walks through a trace with an allocator on one device, pass after pass, without making garbage of its own.
///
/// For each row, the loop does the same as a C program that replays the trace: it allocates and remembers, or
/// looks up and frees. One thread plays the rows in order, so streams get their work and their waits as in the
/// trace. A [SpreadReplay] lets several threads play rows, each with its own replay.
public final class Replay implements Walk {
    /// Replaces the address if the allocation failed, so that its free is skipped.
    private static final long FAILED = -1;
    /// Replaces the address in an empty slot.
    private static final long EMPTY = -2;

    private final Trace trace;
    private final DeviceMemory memory;
    private final Routing routing;
    private final int device;
    private final long[] streams;
    private final long event;
    private final BlockWork work;
    private final boolean hasWork;
    private final Failures onFailure;

    // The slots of this replay's device.
    private final long[] addresses;
    private final int[] rows;
    private final @Nullable DeviceBuffer[] buffers;

    private boolean goesOn = true;
    private long failures;
    private long waits;

    public interface Failures {
        /// Called after an allocation failed.
        ///
        /// @param row its row in the trace
        /// @return whether the pass goes on; if not, the other rows are skipped
        boolean failed(int row, DeviceOutOfMemoryException failure);
    }

    /// The blocks of a device, by slot.
    ///
    /// @param buffers the objects, if blocks are buffers
    @SuppressWarnings("ArrayRecordComponent") // Plain arrays, like those of the trace.
    record Blocks(long[] addresses, int[] rows, @Nullable DeviceBuffer[] buffers) {
        static Blocks of(Trace trace, Layer layer) {
            long[] addresses = new long[trace.slotCount()];
            Arrays.fill(addresses, EMPTY);
            return new Blocks(
                    addresses,
                    new int[trace.slotCount()],
                    new DeviceBuffer[layer == Layer.BUFFER ? trace.slotCount() : 0]);
        }
    }

    /// Prepares a replay.
    ///
    /// @param streams the driver's streams for those of the trace
    /// @param onFailure hears of failed allocations
    Replay(
            Trace trace,
            DeviceMemory memory,
            Routing routing,
            int device,
            long[] streams,
            Blocks blocks,
            BlockWork work,
            Failures onFailure) {
        this.trace = trace;
        this.memory = memory;
        this.routing = routing;
        this.device = device;
        this.streams = streams;
        this.work = work;
        hasWork = !work.isNone();
        this.onFailure = onFailure;
        event = memory.driver().events().create(device);
        addresses = blocks.addresses();
        rows = blocks.rows();
        buffers = blocks.buffers();
    }

    @Override
    public void synchronize() {
        memory.driver().devices().synchronize(device);
    }

    @Override
    public void walk() {
        begin();
        int count = trace.ops().length;
        for (int row = 0; row < count && goesOn; row++) {
            play(row);
        }
        leave();
    }

    void begin() {
        goesOn = true;
        failures = 0;
        waits = 0;
    }

    void play(int row) {
        int slot = trace.slots()[row];
        switch (trace.ops()[row]) {
            case Trace.ALLOCATE -> allocate(row, slot);
            case Trace.FREE -> free(row, slot);
            case Trace.USE -> use(row, slot);
            case Trace.WAIT -> await(streams[trace.streams()[row]], streams[slot]);
            case Trace.TRIM -> memory.trim(device, 0, TrimMode.SYNCHRONIZE);
            default -> memory.streamClosing(device, streams[trace.streams()[row]]);
        }
    }

    /// Leaves the last scope, if one is open.
    void leave() {
        routing.leave();
    }

    @Override
    public long failures() {
        return failures;
    }

    @Override
    public long waits() {
        return waits;
    }

    private void allocate(int row, int slot) {
        long byteSize = trace.byteSizes()[row];
        long stream = streams[trace.streams()[row]];
        long address;
        routing.before(trace.streams()[row]);
        try {
            address = obtain(slot, byteSize, stream);
        } catch (DeviceOutOfMemoryException e) {
            failures++;
            goesOn &= onFailure.failed(row, e);
            addresses[slot] = FAILED;
            return;
        }
        addresses[slot] = address;
        rows[slot] = row;
        if (hasWork && byteSize > 0) {
            work.play(Trace.ALLOCATE, row, address, byteSize, stream);
        }
    }

    private void free(int row, int slot) {
        routing.before(trace.streams()[row]);
        free(slot, streams[trace.streams()[row]]);
    }

    private void free(int slot, long stream) {
        long address = addresses[slot];
        addresses[slot] = EMPTY;
        if (address == FAILED) {
            return;
        }
        if (hasWork && address != 0) {
            work.play(Trace.FREE, rows[slot], address, trace.byteSizes()[rows[slot]], stream);
        }
        giveBack(slot, address, stream);
    }

    private long obtain(int slot, long byteSize, long stream) {
        if (buffers.length == 0) {
            return memory.allocate(byteSize, device, stream);
        }
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, byteSize, device, stream);
        buffers[slot] = buffer;
        return buffer.address();
    }

    /// A buffer that is freed on a stream other than its own is recorded as used there.
    private void giveBack(int slot, long address, long stream) {
        if (buffers.length == 0) {
            memory.free(address, stream);
            return;
        }
        DeviceBuffer buffer = buffers[slot];
        if (buffer == null) {
            return;
        }
        buffers[slot] = null;
        if (stream != buffer.stream()) {
            buffer.recordUse(stream);
        }
        buffer.close();
    }

    private void use(int row, int slot) {
        long address = addresses[slot];
        if (address == FAILED || address == 0) {
            return;
        }
        long stream = streams[trace.streams()[row]];
        if (hasWork) {
            work.play(Trace.USE, rows[slot], address, trace.byteSizes()[rows[slot]], stream);
        }
        memory.recordUse(address, stream);
    }

    /// A wait is for the event's last record, so one event serves all waits.
    private void await(long stream, long awaited) {
        waits++;
        memory.driver().events().record(device, event, awaited);
        memory.driver().streams().await(device, stream, event);
    }

    @Override
    public void freeLeftovers() {
        for (int slot = 0; slot < addresses.length; slot++) {
            if (addresses[slot] != EMPTY) {
                free(slot, streams[trace.streams()[rows[slot]]]);
            }
        }
    }

    /// Ends the replay. The caller frees its blocks after each pass.
    @Override
    public void close() {
        memory.driver().events().destroy(device, event);
    }

    /// The cost of one pass.
    ///
    /// @param hostNanos nanoseconds of the loop over the rows
    /// @param wallNanos the same plus the wait for the device
    /// @param driverCalls the allocator's driver calls in the loop
    /// @param driverNanos on a simulated GPU, the time that a real GPU's driver would have taken for all calls
    ///     of the loop; else 0
    public record Pass(long hostNanos, long wallNanos, long driverCalls, long driverNanos, long failures) {}
}
