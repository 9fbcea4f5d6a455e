package io.cistern.caching.internal.heap;

/// Observes which addresses of a heap become free and which are taken, under the shard's lock.
public interface FreeBlockObserver {
    /// A range became part of a free block.
    ///
    /// @param anew false if the range was free before, and unused since
    void freed(int free, long from, long to, boolean anew);

    /// The start of a free block, up to an address, is taken.
    void taken(int free, long to);

    /// A request found a free block.
    void served();
}
