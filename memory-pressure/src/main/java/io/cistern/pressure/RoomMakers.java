package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;

/// Retries a refused allocation while a room maker frees memory.
final class RoomMakers {
    private final CopyOnWriteArrayList<RoomMaker> makers = new CopyOnWriteArrayList<>();

    void add(RoomMaker maker) {
        makers.add(maker);
    }

    void remove(RoomMaker maker) {
        makers.remove(maker);
    }

    /// @throws DeviceOutOfMemoryException the last refusal, if a limit refuses, the request can never fit, or no
    ///     room maker frees anything more
    long retry(DeviceOutOfMemoryException refusal, LongSupplier attempt) {
        DeviceOutOfMemoryException last = refusal;
        while (!last.isByLimit() && !last.canNeverFit() && isRoomMade(last)) {
            try {
                return attempt.getAsLong();
            } catch (DeviceOutOfMemoryException again) {
                last = again;
            }
        }
        throw last;
    }

    private boolean isRoomMade(DeviceOutOfMemoryException refusal) {
        for (RoomMaker maker : makers) {
            if (maker.makeRoom(refusal)) {
                return true;
            }
        }
        return false;
    }
}
