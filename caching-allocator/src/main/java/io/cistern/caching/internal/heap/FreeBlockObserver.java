package io.cistern.caching.internal.heap;

/// Hears which addresses of a heap become free and which are taken, under the lock of the heap's owner.
public interface FreeBlockObserver {
    /// A range became part of a free block.
    void freed(int free, long from, long to);

    /// The first bytes of a free block, up to an address, are taken.
    void taken(int free, long to);

    /// A request found a free block.
    void served();
}
