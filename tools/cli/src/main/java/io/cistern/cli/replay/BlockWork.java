package io.cistern.cli.replay;

import java.util.concurrent.locks.Lock;

/// Work on each block of a replay besides its allocation and free. Calls come in the order of the block's life.
interface BlockWork {
    /// Called after the block's allocation.
    ///
    /// @param row the row that allocated it
    void allocated(int row, long address, long byteSize, long stream);

    /// Called when a stream other than the block's own uses it, in order after earlier uses.
    ///
    /// @param row the row that allocated it
    default void used(int row, long address, long byteSize, long stream) {}

    /// Called just before the block's free.
    ///
    /// @param row the row that allocated it
    /// @param stream the stream of the last use
    default void freeing(int row, long address, long byteSize, long stream) {}

    /// Returns this work under a lock.
    default BlockWork under(Lock lock) {
        BlockWork work = this;
        return new BlockWork() {
            @Override
            public void allocated(int row, long address, long byteSize, long stream) {
                locked(() -> work.allocated(row, address, byteSize, stream));
            }

            @Override
            public void used(int row, long address, long byteSize, long stream) {
                locked(() -> work.used(row, address, byteSize, stream));
            }

            @Override
            public void freeing(int row, long address, long byteSize, long stream) {
                locked(() -> work.freeing(row, address, byteSize, stream));
            }

            private void locked(Runnable action) {
                lock.lock();
                try {
                    action.run();
                } finally {
                    lock.unlock();
                }
            }
        };
    }

    /// Returns this work followed by another.
    default BlockWork then(BlockWork next) {
        BlockWork first = this;
        return new BlockWork() {
            @Override
            public void allocated(int row, long address, long byteSize, long stream) {
                first.allocated(row, address, byteSize, stream);
                next.allocated(row, address, byteSize, stream);
            }

            @Override
            public void used(int row, long address, long byteSize, long stream) {
                first.used(row, address, byteSize, stream);
                next.used(row, address, byteSize, stream);
            }

            @Override
            public void freeing(int row, long address, long byteSize, long stream) {
                first.freeing(row, address, byteSize, stream);
                next.freeing(row, address, byteSize, stream);
            }
        };
    }
}
