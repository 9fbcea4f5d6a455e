package io.cistern.cli.replay;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cli.trace.Trace;
import org.jspecify.annotations.Nullable;

/// A replay whose blocks are buffers. A buffer that is freed on a stream other than its own is recorded
/// as used there.
final class BufferReplay extends Replay {
    private final DeviceMemory memory;
    private final int device;
    private final @Nullable DeviceBuffer[] buffers;

    /// Prepares a replay, with the parameters of [Replay]'s constructor.
    BufferReplay(
            Trace trace,
            DeviceMemory memory,
            Routing routing,
            int device,
            long[] streams,
            Blocks blocks,
            @Nullable BlockWork work,
            Failures onFailure) {
        super(trace, memory, routing, device, streams, blocks, work, onFailure);
        this.memory = memory;
        this.device = device;
        buffers = blocks.buffers();
    }

    @Override
    long obtain(int slot, long byteSize, long stream) {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, byteSize, device, stream);
        buffers[slot] = buffer;
        return buffer.address();
    }

    @Override
    void giveBack(int slot, long address, long stream) {
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
}
