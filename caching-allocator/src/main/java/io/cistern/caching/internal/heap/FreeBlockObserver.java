package io.cistern.caching.internal.heap;

/// Is told which addresses of a heap become free and which are taken, under the shard's lock.
public interface FreeBlockObserver {
    /// A range became part of a free block.
    void freed(int free, long from, long to);

    /// The start of a free block, up to an address, is taken.
    void taken(int free, long to);

    /// A request found a free block.
    void served();
}
