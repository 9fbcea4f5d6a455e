package io.cistern;

import io.cistern.internal.routing.LimitHandle;

/// A limit on the bytes that are requested at once, in a tree of limits: of the process, of pools, of
/// scopes, of tasks.
///
/// ```java
/// MemoryLimit process = MemoryLimit.of("process", 40L << 30);
/// MemoryLimit serving = process.child("serving", 8L << 30);
/// Allocator caching = memory.open(OpenOptions.spec("caching").limit(serving));    // all its blocks
/// MemoryLimit request = serving.child("request", 1L << 30);
/// try (Scope _ = caching.enter(ScopeOptions.all().limit(request))) {              // blocks made in here
///     …
/// }
/// serving.setByteSize(6L << 30);                                                  // at any time
/// ```
///
/// **Ways to set one.** Each is a limit on requested bytes, and each can be changed by [#setByteSize]:
///
/// | on | set by | changed by |
/// |---|---|---|
/// | all devices of a device memory together | [DeviceMemory.Builder#limit] | the limit itself |
/// | each device | [DeviceMemory.Builder#limitBytes], settings (see there) | [DeviceMemory#limit] |
/// | an allocator | [OpenOptions#limit] | the limit itself |
/// | a pool | [MemoryPool.Builder#limit] or, for its own, [MemoryPool.Builder#limitBytes] | [MemoryPool#limit] |
/// | a region of code | [ScopeOptions#limit] | the limit itself |
///
/// Besides, allocators have options that limit the bytes they *reserve*, for example `caching:max_bytes=8GiB`.
///
/// A block is charged, with the bytes asked for, to each limit that applies and to all above them, each once:
/// those of the [DeviceMemory], of the [Allocator] and of the [Scope] that made it. It stays charged until it
/// is freed, wherever that happens. The devices of one limit count together.
///
/// Limits are exact: no request exceeds them, and a request that fits is never refused, whatever other
/// threads do. A refusal is a [io.cistern.errors.DeviceOutOfMemoryException] that names each limit with its
/// use. An allocation that fails for another reason leaves nothing charged.
///
/// **Cost.** Without limits there is none. A thread leases part of a limit and spends that without atomic
/// instructions. An allocation takes two atomic instructions for each limit if less than an eighth of the limit
/// is free, if its block is larger than 1/64 of the limit, on virtual threads, and on systems without
/// `membarrier(2)`.
///
/// **Threads.** Any thread may call any method at any time. A limit needs no closing; it ends when nothing
/// refers to it.
public final class MemoryLimit {
    private final LimitHandle handle;

    private MemoryLimit(LimitHandle handle) {
        this.handle = handle;
    }

    /// Makes a limit that stands under no other one.
    ///
    /// @param name a name for messages
    /// @param byteSize the most bytes requested at once
    /// @throws IllegalArgumentException if `byteSize` is negative
    public static MemoryLimit of(String name, long byteSize) {
        return new MemoryLimit(LimitHandle.of(name, byteSize, null));
    }

    /// Makes a limit whose bytes count against this one as well.
    ///
    /// @param name a name for messages
    /// @param byteSize the most bytes requested at once; may be more than this limit, which holds too
    /// @throws IllegalArgumentException if `byteSize` is negative
    public MemoryLimit child(String name, long byteSize) {
        return new MemoryLimit(LimitHandle.of(name, byteSize, handle));
    }

    /// Returns the name.
    public String name() {
        return handle.budget().name();
    }

    /// Returns the most bytes requested at once.
    public long byteSize() {
        return handle.budget().limitBytes();
    }

    /// Changes the limit, also while blocks are charged to it. A limit below the bytes in use takes nothing
    /// back; it refuses allocations until enough was freed. An allocation that is under way in another thread
    /// happens before the change or after it.
    ///
    /// @param byteSize the most bytes requested at once from now on
    /// @throws IllegalArgumentException if `byteSize` is negative
    public void setByteSize(long byteSize) {
        handle.budget().setLimitBytes(byteSize);
    }

    /// Returns the bytes of the live blocks charged to this limit and to those below it; weakly consistent
    /// while other threads allocate, exact at rest.
    public long usedBytes() {
        return handle.budget().usedBytes();
    }

    LimitHandle handle() {
        return handle;
    }

    /// Returns name, limit and use, of this limit and of those above it.
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(handle.budget().toString());
        for (LimitHandle above = handle.parent(); above != null; above = above.parent()) {
            text.append("; under ").append(above.budget());
        }
        return text.toString();
    }
}
