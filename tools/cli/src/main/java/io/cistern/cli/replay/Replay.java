package io.cistern.cli.replay;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cli.trace.Trace;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Arrays;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Walks through a trace with an allocator on one device, pass after pass, making no garbage of its own.
///
/// The loop does per row what a C program replaying the trace does: allocate and remember, or look up and free.
/// One thread goes through the rows in their order, so that streams get their work, and their waits, as the
/// trace has them; a [SpreadReplay] lets several threads play rows, each with a replay of its own.
public sealed class Replay implements Walk permits BufferReplay {
    /// In place of an address: that allocation failed, so its free is skipped.
    private static final long FAILED = -1;
    /// In place of an address: the slot is empty.
    private static final long EMPTY = -2;

    private final Trace trace;
    private final DeviceMemory memory;
    private final Routing routing;
    private final int device;
    private final long[] streams;
    private final long event;
    private final @Nullable BlockWork work;
    private final Consumer<DeviceOutOfMemoryException> onFailure;

    // By slot.
    private final long[] addresses;
    private final int[] rows;

    private long failures;
    private long waits;

    /// Where the blocks of a device are, by slot.
    ///
    /// @param addresses where each begins
    /// @param rows which row allocated it
    /// @param buffers the objects, if blocks are those
    @SuppressWarnings("ArrayRecordComponent") // As the trace's.
    record Blocks(long[] addresses, int[] rows, @Nullable DeviceBuffer[] buffers) {
        /// All slots empty.
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
    /// @param blocks where the blocks are
    /// @param work what to do with the blocks, or null
    /// @param onFailure told of each allocation that failed
    Replay(
            Trace trace,
            DeviceMemory memory,
            Routing routing,
            int device,
            long[] streams,
            Blocks blocks,
            @Nullable BlockWork work,
            Consumer<DeviceOutOfMemoryException> onFailure) {
        this.trace = trace;
        this.memory = memory;
        this.routing = routing;
        this.device = device;
        this.streams = streams;
        this.work = work;
        this.onFailure = onFailure;
        event = memory.driver().events().create(device);
        addresses = blocks.addresses();
        rows = blocks.rows();
    }

    @Override
    public void synchronize() {
        memory.driver().devices().synchronize(device);
    }

    @Override
    public void walk() {
        begin();
        int count = trace.ops().length;
        for (int row = 0; row < count; row++) {
            play(row);
        }
        leave();
    }

    /// Prepares for a pass.
    void begin() {
        failures = 0;
        waits = 0;
    }

    /// Does what a row says.
    void play(int row) {
        int slot = trace.slots()[row];
        switch (trace.ops()[row]) {
            case Trace.ALLOCATE -> allocate(row, slot);
            case Trace.FREE -> free(row, slot);
            case Trace.USE -> use(row, slot);
            case Trace.WAIT -> await(streams[trace.streams()[row]], streams[slot]);
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
            onFailure.accept(e);
            addresses[slot] = FAILED;
            return;
        }
        addresses[slot] = address;
        rows[slot] = row;
        if (work != null && byteSize > 0) {
            work.allocated(row, address, byteSize, stream);
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
        if (work != null && address != 0) {
            work.freeing(rows[slot], address, trace.byteSizes()[rows[slot]], stream);
        }
        giveBack(slot, address, stream);
    }

    /// Allocates the block of a slot.
    long obtain(int slot, long byteSize, long stream) {
        return memory.allocate(byteSize, device, stream);
    }

    /// Frees the block of a slot.
    void giveBack(int slot, long address, long stream) {
        memory.free(address, stream);
    }

    private void use(int row, int slot) {
        long address = addresses[slot];
        if (address == FAILED || address == 0) {
            return;
        }
        long stream = streams[trace.streams()[row]];
        if (work != null) {
            work.used(rows[slot], address, trace.byteSizes()[rows[slot]], stream);
        }
        memory.recordUse(address, stream);
    }

    /// A wait holds for what the event recorded last, so one event does for all.
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

    /// Ends the replay; its blocks are freed after each pass.
    @Override
    public void close() {
        memory.driver().events().destroy(device, event);
    }

    /// What one pass took.
    ///
    /// @param hostNanos the loop over the rows
    /// @param wallNanos the same with the wait for the device
    /// @param driverCalls what the allocator asked of the driver in the loop
    /// @param driverNanos what a real GPU's driver would have taken for all calls of the loop, on a simulated
    ///     one; else 0
    /// @param failures allocations that failed
    public record Pass(long hostNanos, long wallNanos, long driverCalls, long driverNanos, long failures) {}
}
