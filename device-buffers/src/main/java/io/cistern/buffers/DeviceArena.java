package io.cistern.buffers;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.internal.names.Devices;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A region of device memory whose buffers go together, in the spirit of [java.lang.foreign.Arena]: allocating is
/// moving a mark forward, and nothing is freed alone.
///
/// ```java
/// try (DeviceArena arena = DeviceArena.builder(memory).name("step").confined().open(0, stream)) {
///     for (Batch batch : batches) {
///         DeviceBuffer x = arena.buffer(batch.bytes());
///         step(x, arena.buffer(scratchBytes));
///         arena.reset();                       // all of it is free again, in stream order
///     }
/// }
/// ```
///
/// **Growth.** When its chunk is full, the arena takes another one at least as large as all before. A reset leaves
/// one chunk, as large as what was needed; an arena begins with what those of its name needed before.
///
/// **Generations.** Each reset ends a generation. A buffer of an earlier one, or of a closed arena, can't be used:
/// an [IllegalStateException] says so. A bare [address][#allocate] is as stale, but only the program knows.
///
/// **Streams.** An arena belongs to one stream: what comes after a reset may use the same memory at once, since it
/// comes later in that stream. Buffers used on other streams say so ([DeviceBuffer#recordUse]; copies and launches
/// of this library do): the reset makes the arena's stream wait for them.
///
/// **Threads.** A confined arena is used by the thread that opened it alone; of a shared one any thread may allocate
/// at any time, while resets and close are the program's to order with the other threads' work.
public final class DeviceArena implements AutoCloseable {
    /// Where blocks of device memory begin, and so buffers of an arena too.
    private static final long ALIGNMENT = 256;

    private final DeviceMemory memory;
    private final Builder.BlockSource from;
    private final int device;
    private final long stream;
    private final @Nullable Thread owner;
    private final ArenaSizes sizes;

    private final long firstBytes;

    /// Chunks before the present one; guarded by `this`.
    private final List<ArenaChunk> full = new ArrayList<>();

    private volatile ArenaChunk chunk = ArenaChunk.NONE;
    private volatile ArenaGeneration generation = new ArenaGeneration(this, 1);

    /// Whether other streams use buffers of this generation.
    private volatile boolean usedElsewhere;

    /// The most that a generation needed; guarded by `this`, as `closed`.
    private long mostBytes;

    private boolean closed;

    DeviceArena(Builder builder, int device, long stream) {
        this.memory = builder.memory;
        this.from = builder.from;
        this.owner = builder.shared ? null : Thread.currentThread();
        this.sizes = BufferSupport.of(memory).arenaSizes(builder.name);
        this.firstBytes = builder.firstBytes;
        this.device = device;
        this.stream = stream;
    }

    /// Starts to open an arena.
    public static Builder builder(DeviceMemory memory) {
        return new Builder(memory);
    }

    /// Memory of the present generation as a bare address.
    ///
    /// @param byteSize bytes wanted; 0 gives address 0
    /// @return a multiple of 256
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if the arena is closed
    /// @throws WrongThreadException if it is confined to another thread
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if it has to grow and there is no such memory, or a
    ///     limit is reached
    public long allocate(long byteSize) {
        long rounded = (byteSize + ALIGNMENT - 1) & -ALIGNMENT;
        long address = 0;
        if (owner == null) {
            address = rounded > 0 ? chunk.takeShared(rounded) : 0;
        } else {
            requireOwner();
            address = rounded > 0 ? chunk.take(rounded) : 0;
        }
        return address != 0 ? address : allocateSlowly(byteSize, rounded);
    }

    /// A buffer of the present generation. Closing it only ends its use: the memory stays the arena's.
    ///
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if the arena is closed
    /// @throws WrongThreadException if it is confined to another thread
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if it has to grow and there is no such memory, or a
    ///     limit is reached
    public DeviceBuffer buffer(long byteSize) {
        ArenaGeneration present = generation;
        return new DeviceBuffer(memory, allocate(byteSize), byteSize, device, stream, present);
    }

    /// Without room in the chunk, without bytes, or closed.
    private synchronized long allocateSlowly(long byteSize, long rounded) {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
        if (byteSize <= 0) {
            if (byteSize < 0) {
                throw new IllegalArgumentException("byteSize is negative: " + byteSize);
            }
            return 0;
        }
        long address = chunk.takeShared(rounded);
        if (address == 0) {
            grow(rounded > 0 ? rounded : byteSize);
            address = chunk.takeShared(rounded);
        }
        return address;
    }

    /// A new chunk doubles the arena at least, so that there are few.
    private void grow(long atLeast) {
        long soFar = reservedBytes();
        long wanted = Math.max(atLeast, soFar == 0 ? Math.max(firstBytes, sizes.next()) : soFar);
        long rounded = Math.max(wanted, (wanted + ALIGNMENT - 1) & -ALIGNMENT); // more than there is stays more
        long base = from.allocate(rounded, device, stream);
        if (chunk != ArenaChunk.NONE) {
            full.add(chunk);
        }
        chunk = new ArenaChunk(base, rounded);
    }

    /// Ends the generation: all its buffers are stale, and its memory is used for the next.
    ///
    /// @throws IllegalStateException if the arena is closed
    /// @throws WrongThreadException if it is confined to another thread
    public void reset() {
        requireOwner();
        synchronized (this) {
            if (closed) {
                throw new IllegalStateException(this + " is closed");
            }
            generation.end();
            generation = new ArenaGeneration(this, generation.number() + 1);
            mostBytes = Math.max(mostBytes, usedBytes());
            if (full.isEmpty() && !usedElsewhere) {
                chunk.reset();
            } else {
                sizes.needed(mostBytes);
                freeChunks();
            }
        }
    }

    /// The allocators know which other streams use a chunk, so a chunk that others use goes back to them.
    private void freeChunks() {
        if (chunk != ArenaChunk.NONE) {
            full.add(chunk);
        }
        chunk = ArenaChunk.NONE;
        usedElsewhere = false;
        for (ArenaChunk each : full) {
            memory.free(each.base, stream);
        }
        full.clear();
    }

    /// Ends the arena and all its buffers, and frees its memory in the order of its stream. Closing twice does
    /// nothing.
    ///
    /// @throws WrongThreadException if it is confined to another thread
    @Override
    public void close() {
        requireOwner();
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            generation.end();
            mostBytes = Math.max(mostBytes, usedBytes());
            if (mostBytes > 0) {
                sizes.needed(mostBytes);
            }
            freeChunks();
        }
    }

    @SuppressWarnings("ReferenceEquality") // a thread equals itself alone
    private void requireOwner() {
        if (owner != null && Thread.currentThread() != owner) {
            throw new WrongThreadException(this + " is confined to " + owner.getName());
        }
    }

    /// Bytes that buffers of this generation take, in multiples of 256.
    public synchronized long usedBytes() {
        long used = chunk.usedBytes();
        for (ArenaChunk each : full) {
            used += each.end - each.base;
        }
        return used;
    }

    /// Bytes that the arena has from its allocator.
    public synchronized long reservedBytes() {
        long reserved = chunk.end - chunk.base;
        for (ArenaChunk each : full) {
            reserved += each.end - each.base;
        }
        return reserved;
    }

    /// The number of the present generation, from 1.
    public long generation() {
        return generation.number();
    }

    void usedOnAnotherStream() {
        usedElsewhere = true;
    }

    void useUntil(long address, long event) {
        memory.moduleSupport().recordUseUntil(chunkOf(address), event);
        usedElsewhere = true;
    }

    /// The beginning of the chunk that a buffer of this generation lies in.
    synchronized long chunkOf(long address) {
        for (ArenaChunk each : full) {
            if (each.base <= address && address < each.end) {
                return each.base;
            }
        }
        return chunk.base;
    }

    /// Device and generation.
    @Override
    public String toString() {
        return "DeviceArena[device " + device + ", stream 0x" + Long.toHexString(stream) + ", generation "
                + generation.number() + "]";
    }

    /// How to open a [DeviceArena].
    ///
    /// **Threads.** One thread at a time.
    public static final class Builder {
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

        Builder(DeviceMemory memory) {
            this.memory = memory;
            this.from = memory::allocate;
        }

        /// Takes its memory from an allocator, whichever is current; without this and [#from(MemoryPool)] from the
        /// current one, or that of the scope, when it grows.
        public Builder from(Allocator allocator) {
            this.from = allocator::allocate;
            return this;
        }

        /// Takes its memory from a pool.
        ///
        /// @throws IllegalArgumentException if it is a pool of other device memory
        public Builder from(MemoryPool pool) {
            if (pool.memory() != memory) {
                throw new IllegalArgumentException(pool + " is of other device memory");
            }
            this.from = pool::allocate;
            return this;
        }

        /// What arenas of its kind are called: each begins with as much memory as those before needed. Without this
        /// call all arenas of the device memory that have no name are of one kind.
        public Builder name(String name) {
            this.name = name;
            return this;
        }

        /// The first chunk has at least so many bytes, whatever earlier arenas needed.
        ///
        /// @throws IllegalArgumentException if it is negative
        public Builder firstBytes(long bytes) {
            if (bytes < 0) {
                throw new IllegalArgumentException("firstBytes is negative: " + bytes);
            }
            this.firstBytes = bytes;
            return this;
        }

        /// Used by the thread that opens it alone; this is the usual.
        public Builder confined() {
            shared = false;
            return this;
        }

        /// Used by any thread.
        public Builder shared() {
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
}
