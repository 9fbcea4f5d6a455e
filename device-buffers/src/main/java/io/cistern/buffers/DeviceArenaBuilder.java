package io.cistern.buffers;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.internal.routing.Devices;

/// How to open a [DeviceArena].
///
/// **Threads.** One thread at a time.
public final class DeviceArenaBuilder {
    /// Where chunks come from.
    @FunctionalInterface
    interface BlockSource {
        long allocate(long byteSize, int device, long stream);
    }

    final DeviceMemory memory;

    BlockSource from;
    String name = "";
    boolean shared;
    long firstBytes;

    DeviceArenaBuilder(DeviceMemory memory) {
        this.memory = memory;
        this.from = memory::allocate;
    }

    /// Takes its memory from an allocator, whichever is current; without this and [#from(MemoryPool)] from the
    /// current one, or that of the scope, when it grows.
    public DeviceArenaBuilder from(Allocator allocator) {
        this.from = allocator::allocate;
        return this;
    }

    /// Takes its memory from a pool.
    ///
    /// @throws IllegalArgumentException if it is a pool of other device memory
    public DeviceArenaBuilder from(MemoryPool pool) {
        if (pool.memory() != memory) {
            throw new IllegalArgumentException(pool + " is of other device memory");
        }
        this.from = pool::allocate;
        return this;
    }

    /// What arenas of its kind are called: each begins with as much memory as those before needed. Without this call
    /// all arenas of the device memory that have no name are of one kind.
    public DeviceArenaBuilder name(String name) {
        this.name = name;
        return this;
    }

    /// The first chunk has at least so many bytes, whatever earlier arenas needed.
    ///
    /// @throws IllegalArgumentException if it is negative
    public DeviceArenaBuilder firstBytes(long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException("firstBytes is negative: " + bytes);
        }
        this.firstBytes = bytes;
        return this;
    }

    /// Used by the thread that opens it alone; this is the usual.
    public DeviceArenaBuilder confined() {
        shared = false;
        return this;
    }

    /// Used by any thread.
    public DeviceArenaBuilder shared() {
        shared = true;
        return this;
    }

    /// Opens it. Memory is taken with the first allocation.
    ///
    /// @param device the device's ordinal
    /// @param stream the stream on which its buffers are used
    /// @throws IndexOutOfBoundsException if there is no such device
    public DeviceArena open(int device, long stream) {
        Devices.check(device, memory.environment().deviceCount());
        return new DeviceArena(this, device, stream);
    }
}
