package io.cistern;

import io.cistern.internal.routing.LimitHandle;

/// A limit on the bytes that are requested at once, in a tree of limits: of the process, of pools, of
/// scopes, of tasks.
///
/// ```java
/// MemoryLimit process = MemoryLimit.of("process", 40L << 30);
/// MemoryLimit serving = process.child("serving", 8L << 30);
/// Allocator pool = memory.open(OpenOptions.spec("caching").limit(serving));       // all blocks of this
/// allocator MemoryLimit request = serving.child("request", 1L << 30);
/// try (Scope _ = pool.enter(ScopeOptions.all().limit(request))) {                 // blocks made in here
///     …
/// }
/// serving.setByteSize(6L << 30);                                                  // at any time
/// ```
///
/// **Ways to set one.** On everything: [DeviceMemory.Builder#limit]. On one device:
/// [DeviceMemory.Builder#limitBytes] or the settings `cistern.device.N.limit` and `cistern.limit`; those
/// stay as they are. On one allocator: [OpenOptions#limit]. On a pool: [MemoryPool.Builder#limitBytes],
/// which stays, or the limit of the scopes that it serves. On a region of code: [ScopeOptions#limit].
///
/// A block is charged, with the bytes asked for, to each limit that applies and to all above them, each once:
/// those of the [DeviceMemory], of the [Allocator] and of the [Scope] that made it. It stays charged until it
/// is freed, wherever that happens. The devices of one limit count together.
///
/// Limits are exact: no request exceeds them, and a request that fits is never refused, whatever other
/// threads do. A refusal is a [io.cistern.errors.DeviceOutOfMemoryException] that names each limit with its
/// use. An allocation that fails
/// otherwise leaves nothing charged.
///
/// **Cost.** Without limits none. A thread leases part of a limit and spends that without atomic
/// instructions. Below an eighth of free room, for a block larger than 1/64 of the
/// limit, on virtual threads, and on systems without `membarrier(2)`, it is two atomic instructions a limit
/// for each of them.
///
/// **Threads.** Any thread may call any method at any time. A limit needs no closing; it ends when nothing
/// refers to it.
public final class MemoryLimit {
    private final LimitHandle handle;

    private MemoryLimit(LimitHandle handle) {
        this.handle = handle;
    }

    /// Makes a limit that is under no other.
    ///
    /// @param name a name for messages
    /// @param byteSize the most bytes requested at once
    /// @throws IllegalArgumentException if `byteSize` is negative
    public static MemoryLimit of(String name, long byteSize) {
        return new MemoryLimit(LimitHandle.of(name, byteSize, null));
    }

    /// Makes a limit whose bytes count against this one too.
    ///
    /// @param name a name for messages
    /// @param byteSize the most bytes requested at once; this limit holds as well, whichever is reached first
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

    /// Changes the limit, also while blocks are charged to it. Lowered below what is in use, it takes
    /// nothing back and refuses further allocations until enough was freed; what threads leased in advance
    /// and did not spend is recalled. Allocations of other threads that are under way come before the change
    /// or after it.
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

    /// Returns name, limit and use, and the limits above.
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(handle.budget().toString());
        for (LimitHandle above = handle.parent(); above != null; above = above.parent()) {
            text.append("; under ").append(above.budget());
        }
        return text.toString();
    }
}
