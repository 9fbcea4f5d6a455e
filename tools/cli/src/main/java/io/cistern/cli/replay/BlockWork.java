package io.cistern.cli.replay;

import java.util.concurrent.locks.Lock;

/// Work on each block of a replay besides its allocation and free. Calls come in the order of the block's life.
@SuppressWarnings("ReferenceEquality") // There is one that does nothing.
interface BlockWork {
    BlockWork NONE = (_, _, _, _, _) -> {};

    /// Called after the block's allocation, when a stream other than the block's own uses it, in order after earlier
    /// uses, and just before its free.
    ///
    /// @param op [Trace#ALLOCATE][io.cistern.cli.trace.Trace#ALLOCATE], `USE` or `FREE`
    /// @param row the row that allocated it
    /// @param stream the stream that does so; of a free, that of the last use
    void play(byte op, int row, long address, long byteSize, long stream);

    default boolean isNone() {
        return this == NONE;
    }

    default BlockWork under(Lock lock) {
        return this == NONE
                ? NONE
                : (op, row, address, byteSize, stream) -> {
                    lock.lock();
                    try {
                        play(op, row, address, byteSize, stream);
                    } finally {
                        lock.unlock();
                    }
                };
    }

    default BlockWork then(BlockWork next) {
        return next == NONE
                ? this
                : (op, row, address, byteSize, stream) -> {
                    play(op, row, address, byteSize, stream);
                    next.play(op, row, address, byteSize, stream);
                };
    }
}
