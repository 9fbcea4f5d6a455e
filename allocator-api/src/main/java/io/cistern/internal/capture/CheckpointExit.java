package io.cistern.internal.capture;

import io.cistern.internal.routing.Route;
import io.cistern.spi.DeviceAllocator;

/// Where frees of a private allocator's blocks go once a checkpoint noted some of them.
final class CheckpointExit implements DeviceAllocator {
    private final Route route;
    private final DeviceAllocator maker;
    private final GraphBlocks memory;
    private final Checkpoints checkpoints;

    CheckpointExit(Route route, GraphBlocks memory, Checkpoints checkpoints) {
        this.route = route;
        this.maker = route.maker();
        this.memory = memory;
        this.checkpoints = checkpoints;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return maker.allocate(byteSize, device, stream);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        if (!checkpoints.hasNoted(address) || !memory.keepOrLeave(route, address, byteSize)) {
            maker.free(address, byteSize, device, stream);
        }
    }
}
