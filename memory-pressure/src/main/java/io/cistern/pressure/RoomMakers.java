package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.CopyOnWriteArrayList;

/// Retries a refused allocation for as long as a room maker frees something.
final class MakingRoom extends AllocatorAdaptor {
    private final CopyOnWriteArrayList<RoomMaker> makers = new CopyOnWriteArrayList<>();

    MakingRoom(DeviceAllocator upstream) {
        super(upstream);
    }

    void add(RoomMaker maker) {
        makers.add(maker);
    }

    void remove(RoomMaker maker) {
        makers.remove(maker);
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        while (true) {
            try {
                return upstream().allocate(byteSize, device, stream);
            } catch (DeviceOutOfMemoryException failure) {
                if (!isRoomMade(failure)) {
                    throw failure;
                }
            }
        }
    }

    private boolean isRoomMade(DeviceOutOfMemoryException failure) {
        for (RoomMaker maker : makers) {
            if (maker.makeRoom(failure)) {
                return true;
            }
        }
        return false;
    }
}
