package io.cistern.buffers;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.internal.LastStreams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Devices;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.ThreadNames;
import io.cistern.internal.routing.Router;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A region of device memory whose buffers are all freed together, in the spirit of
/// [java.lang.foreign.Arena]: an allocation advances a pointer, and no buffer is freed on its own.
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
/// **Growth.** An arena allocates memory in chunks. When a request does not fit in the current chunk,
/// the arena allocates another one, as large as all its chunks so far together, or as the request if
/// that is larger. If there is too little memory for that, the new chunk has just the size of the
/// request. If a generation needed several chunks, the reset frees them, and the next generation begins
/// with a single chunk that has room for as much. A new arena begins with about as much as earlier
/// arenas of its name needed.
///
/// **Generations.** Each reset ends a generation. A buffer of an earlier generation, or of a closed
/// arena, throws an [IllegalStateException] when it is used. An address from [#allocate] also becomes
/// invalid, but Cistern does not check its use.
///
/// **Streams.** An arena belongs to one stream. New buffers may reuse the memory right after a reset,
/// since their work runs later on that stream. If a buffer is used on another stream, record the use
/// ([DeviceBuffer#recordUse]); copies and launches of this library record their uses themselves. After
/// such a use, the next reset frees the arena's chunks, and their memory is reused only after the other
/// stream's work.
///
/// **Captures.** A chunk that the arena allocates in a capture is the graph's memory, so later generations
/// would use it while the graph may run. A chunk that the arena frees in a capture stays with the graph. So
/// open a separate arena in each capture, and close it before the capture ends.
///
/// **Threads.** Only the thread that opened a confined arena may use it. Any thread may allocate from a
/// shared arena at any time. The program must not reset or close it while other threads still use its
/// buffers.
public final class DeviceArena implements AutoCloseable {
    /// The alignment of blocks of device memory, and so of an arena's buffers.
    private static final long ALIGNMENT = 256;

    private static final long MOST_BYTES = Long.MAX_VALUE & -ALIGNMENT;

    private final DeviceMemory memory;
    private final Builder.BlockSource from;
    private final int device;
    private final long stream;
    private final @Nullable Thread owner;
    private final ArenaSizes sizes;

    private final long firstBytes;

    /// Chunks before the current one; guarded by `this`.
    private final List<ArenaChunk> full = new ArrayList<>();

    private volatile ArenaChunk chunk = ArenaChunk.NONE;
    private volatile ArenaGeneration generation = new ArenaGeneration(this, 1);

    /// Whether other streams use buffers of this generation.
    private volatile boolean usedElsewhere;

    /// The most bytes that a generation needed; guarded by `this`, like `closed`.
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
        LastStreams.of(memory).opened(device, stream);
    }

    /// Returns a builder that opens arenas on a device memory.
    public static Builder builder(DeviceMemory memory) {
        return new Builder(memory);
    }

    /// Allocates memory of the current generation as a bare address.
    ///
    /// @param byteSize bytes wanted; 0 gives address 0
    /// @return the address, a multiple of 256
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if the arena is closed
    /// @throws WrongThreadException if the arena is confined to another thread
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the arena has to grow and memory runs out or a
    ///     limit is reached
    public long allocate(long byteSize) {
        long rounded = rounded(byteSize);
        long address = 0;
        if (owner == null) {
            address = rounded > 0 ? chunk.takeShared(rounded) : 0;
        } else {
            requireOwner();
            address = rounded > 0 ? chunk.take(rounded) : 0;
        }
        return address != 0 ? address : allocateSlowly(byteSize, rounded);
    }

    /// Returns a buffer of the current generation. Closing the buffer makes it unusable, but the arena
    /// keeps its memory.
    ///
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if the arena is closed
    /// @throws WrongThreadException if the arena is confined to another thread
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the arena has to grow and memory runs out or a
    ///     limit is reached
    public DeviceBuffer buffer(long byteSize) {
        ArenaGeneration present = generation;
        return new DeviceBuffer(memory, allocate(byteSize), byteSize, device, stream, present);
    }

    /// The slow path: the chunk has no room, the size is 0 or illegal, or the arena is closed.
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
        return address != 0 ? address : grow(rounded);
    }

    /// Rounds up without overflow: no device has that many bytes.
    private static long rounded(long byteSize) {
        return (Math.min(byteSize, MOST_BYTES) + ALIGNMENT - 1) & -ALIGNMENT;
    }

    /// Takes bytes from a new chunk before other threads can see it.
    private long grow(long byteSize) {
        ArenaChunk next = newChunk(byteSize);
        long address = next.take(byteSize);
        if (chunk != ArenaChunk.NONE) {
            full.add(chunk);
        }
        chunk = next;
        return address;
    }

    /// A new chunk doubles the arena, so that there are few chunks. If memory is short, it holds only the requested
    /// bytes.
    private ArenaChunk newChunk(long atLeast) {
        long soFar = reservedBytes();
        long wanted = rounded(Math.max(atLeast, soFar == 0 ? Math.max(firstBytes, sizes.next()) : soFar));
        try {
            return new ArenaChunk(from.allocate(wanted, device, stream), wanted);
        } catch (DeviceOutOfMemoryException refused) {
            if (wanted == atLeast) {
                throw refused;
            }
            return new ArenaChunk(from.allocate(atLeast, device, stream), atLeast);
        }
    }

    /// Ends the generation: all its buffers become unusable, and its memory is free for the next
    /// generation.
    ///
    /// @throws IllegalStateException if the arena is closed
    /// @throws WrongThreadException if the arena is confined to another thread
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual
    ///     thread; nothing is changed then
    public void reset() {
        requireOwner();
        Router.refuseThreadStream(device, stream);
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

    /// A chunk that other streams use is freed to its allocator, which tracks those streams.
    private void freeChunks() {
        if (chunk != ArenaChunk.NONE) {
            full.add(chunk);
        }
        chunk = ArenaChunk.NONE;
        usedElsewhere = false;
        Failures failures = new Failures();
        full.forEach(each -> failures.gather(() -> memory.free(each.base, stream)));
        full.clear();
        failures.rethrow();
    }

    /// Frees the arena's memory in the order of its stream, and makes all its buffers unusable. Closing
    /// twice does nothing.
    ///
    /// @throws WrongThreadException if the arena is confined to another thread
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual
    ///     thread; the arena is still open then
    @Override
    public void close() {
        requireOwner();
        Router.refuseThreadStream(device, stream);
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

    @SuppressWarnings("ReferenceEquality") // threads are compared by identity
    private void requireOwner() {
        if (owner != null && Thread.currentThread() != owner) {
            throw new WrongThreadException(this + " is confined to " + ThreadNames.of(owner));
        }
    }

    /// Returns how many bytes the current generation has used. The current chunk counts up to the end of
    /// its last allocation; earlier chunks count in full.
    public synchronized long usedBytes() {
        long used = chunk.usedBytes();
        for (ArenaChunk each : full) {
            used += each.end - each.base;
        }
        return used;
    }

    /// Returns the bytes of all chunks that the arena holds.
    public synchronized long reservedBytes() {
        long reserved = chunk.end - chunk.base;
        for (ArenaChunk each : full) {
            reserved += each.end - each.base;
        }
        return reserved;
    }

    /// Returns the number of the current generation, from 1.
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

    /// Returns the beginning of the chunk that a buffer of this generation lies in.
    synchronized long chunkOf(long address) {
        for (ArenaChunk each : full) {
            if (each.base <= address && address < each.end) {
                return each.base;
            }
        }
        return chunk.base;
    }

    /// Returns device, stream and generation.
    @Override
    public String toString() {
        return "DeviceArena[device " + device + ", stream 0x" + Long.toHexString(stream) + ", generation "
                + generation.number() + "]";
    }

    /// Configures and opens a [DeviceArena].
    ///
    /// **Threads.** One thread at a time.
    public static final class Builder {
        /// Allocates chunks.
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

        /// Takes memory from an allocator or pool instead of the current one. Without this call, each chunk
        /// comes from the allocator that is current when the arena grows, or from that of the thread's
        /// scope.
        ///
        /// @throws IllegalArgumentException if the allocator belongs to another device memory
        public Builder from(Allocator allocator) {
            if (allocator.memory() != memory) {
                throw new IllegalArgumentException(allocator + " belongs to another DeviceMemory");
            }
            this.from = allocator::allocate;
            return this;
        }

        /// Names the arena, which then begins with about as much memory as earlier arenas of that name
        /// needed. The 1,024 most recently used names are remembered. All unnamed arenas of a device memory
        /// count as arenas of one name.
        public Builder name(String name) {
            this.name = name;
            return this;
        }

        /// Sets a lower bound for the first chunk, whatever earlier arenas needed.
        ///
        /// @param bytes the lower bound; 0, the default, sets none
        /// @throws IllegalArgumentException if `bytes` is negative
        public Builder firstBytes(long bytes) {
            if (bytes < 0) {
                throw new IllegalArgumentException("firstBytes is negative: " + bytes);
            }
            this.firstBytes = bytes;
            return this;
        }

        /// Lets only the thread that opens the arena use it; this is the default.
        public Builder confined() {
            shared = false;
            return this;
        }

        /// Lets any thread allocate from the arena.
        public Builder shared() {
            shared = true;
            return this;
        }

        /// Opens the arena. It takes no memory before its first allocation.
        ///
        /// @param device the device's ordinal
        /// @param stream the stream on which its buffers are used
        /// @throws IndexOutOfBoundsException if there is no such device
        public DeviceArena open(int device, long stream) {
            Devices.check(device, memory.environment().deviceCount());
            return new DeviceArena(this, device, stream);
        }

        /// Opens the arena for a stream of its device memory: see [#open(int, long)].
        public DeviceArena open(CudaStream stream) {
            return open(stream.device(), stream.handle());
        }
    }
}
