package io.cistern.buffers;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/// A block that an arena cuts buffers from, front to back.
///
/// Invariant: `base ≤ position ≤ end`; the bytes before the position are handed out.
final class ArenaChunk {
    private static final VarHandle POSITION = positionHandle();

    /// A chunk without room.
    static final ArenaChunk NONE = new ArenaChunk(0, 0);

    final long base;
    final long end;
    private long position;

    ArenaChunk(long base, long byteSize) {
        this.base = base;
        this.end = base + byteSize;
        this.position = base;
    }

    /// Takes bytes, on one thread at a time.
    ///
    /// @return the address, or 0 if there is no room
    long take(long byteSize) {
        long start = position;
        if (byteSize > end - start) {
            return 0;
        }
        position = start + byteSize;
        return start;
    }

    /// Takes bytes, on any thread.
    ///
    /// @return the address, or 0 if there is no room
    long takeShared(long byteSize) {
        while (true) {
            long start = (long) POSITION.getVolatile(this);
            if (byteSize > end - start) {
                return 0;
            }
            if (POSITION.compareAndSet(this, start, start + byteSize)) {
                return start;
            }
        }
    }

    long usedBytes() {
        return (long) POSITION.getVolatile(this) - base;
    }

    void reset() {
        POSITION.setVolatile(this, base);
    }

    private static VarHandle positionHandle() {
        try {
            return MethodHandles.lookup().findVarHandle(ArenaChunk.class, "position", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
