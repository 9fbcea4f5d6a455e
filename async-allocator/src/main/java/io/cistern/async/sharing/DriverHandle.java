package io.cistern.async.sharing;

import io.cistern.cuda.Sharing;
import java.nio.ByteBuffer;

/// Opaque bytes by which another process opens a pool, a pointer or an event of this one.
final class DriverHandle {
    static final DriverHandle NONE = new DriverHandle(new byte[Sharing.HANDLE_BYTES]);

    private final byte[] bytes;

    DriverHandle(byte[] bytes) {
        this.bytes = bytes.clone();
    }

    static DriverHandle readFrom(ByteBuffer buffer) {
        byte[] bytes = new byte[Sharing.HANDLE_BYTES];
        buffer.get(bytes);
        return new DriverHandle(bytes);
    }

    void writeTo(ByteBuffer buffer) {
        buffer.put(bytes);
    }

    byte[] bytes() {
        return bytes.clone();
    }
}
