package io.cistern.cli.replay;

import java.util.concurrent.locks.Lock;

/// What is done with each block of a replay besides allocating and freeing it. Called in stream order with the
/// block's life.
interface BlockWork {
    /// The block has been allocated.
    ///
    /// @param row the row that allocated it
    void allocated(int row, long address, long byteSize, long stream);

    /// The block is used on another stream than its own, in order after the uses before.
    ///
    /// @param row the row that allocated it
    default void used(int row, long address, long byteSize, long stream) {}

    /// The block is about to be freed.
    ///
    /// @param row the row that allocated it
    /// @param stream the stream of the last use
    default void freeing(int row, long address, long byteSize, long stream) {}

    /// This work, by one thread at a time.
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

    /// This work, then another.
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
