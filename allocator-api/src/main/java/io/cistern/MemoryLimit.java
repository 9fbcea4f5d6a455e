package io.cistern;

import io.cistern.internal.names.Sizes;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.LimitHandle;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// A limit on the requested bytes of all live blocks that are charged to it. Limits form trees: for
/// example, one for the process, and under it those of pools, scopes and tasks. A limit can be set, raised,
/// lowered and lifted at any time.
///
/// ```java
/// memory.limits().device(0).setShare(0.8);                                        // at any time
/// MemoryLimit process = MemoryLimit.of("process", 40L << 30);
/// MemoryLimit serving = process.child("serving", 8L << 30);
/// Allocator caching = memory.open(OpenOptions.spec("caching").limit(serving));    // all its blocks
/// MemoryLimit request = serving.child("request", 1L << 30);
/// try (Scope _ = caching.enter(ScopeOptions.all().limit(request))) {              // blocks made in here
///     …
/// }
/// serving.setByteSize(6L << 30);
/// serving.lift();
/// ```
///
/// **Ways to set a limit.** Each sets a limit on requested bytes, which [#setByteSize], [#setShare] and
/// [#lift] can change:
///
/// | limit on | set when it is opened by | changed at any time by |
/// |---|---|---|
/// | all devices of a device memory together | [DeviceMemory.Builder#limit] | the limit itself |
/// | each device | [DeviceMemory.Builder#limitBytes] or settings (see there) | [DeviceLimits#device] |
/// | an allocator | [OpenOptions#limit] | [Allocator#limit] |
/// | a pool | [MemoryPool.Builder#limit] or [MemoryPool.Builder#limitBytes] | [Allocator#limit] |
/// | a region of code | [ScopeOptions#limit] | the limit itself |
///
/// In addition, allocators have options that limit the bytes they *reserve*, for example
/// `caching:max_bytes=8GiB`.
///
/// **Charging.** The requested bytes of a block are charged to the limits of the [DeviceMemory], the
/// [Allocator] and the [Scope] that the block came from, and to all limits above these. No limit is charged
/// twice for one block. The block stays charged until it is freed, wherever that happens. A limit for
/// several devices counts the sum of their bytes. If a device or an allocator gets its first limit later,
/// blocks that are alive at that time count, too.
///
/// **Limits are exact.** No request exceeds them, and they refuse no request that fits, whatever other
/// threads do. A refusal is a [io.cistern.errors.DeviceOutOfMemoryException] that names each limit and the
/// bytes in use under it. An allocation that fails for another reason leaves nothing charged.
///
/// **Cost.** Without limits there is no cost. Usually a thread leases part of a limit and spends the lease
/// without atomic instructions. But an allocation and its free together take two atomic instructions for
/// each limit in these cases:
///
/// - less than an eighth of the limit is free
/// - the block is larger than 1/64 of the limit
/// - the thread is a virtual thread
/// - the system lacks `membarrier(2)`
///
/// **Threads.** Any thread may call any method at any time. A limit needs no closing; it ends when nothing
/// refers to it.
public final class MemoryLimit {
    private final LimitHandle handle;
    private final Home home;

    /// The device, allocator or device memory that a limit belongs to.
    ///
    /// @param begin charges blocks to the limit; called before its first change
    /// @param capacity the memory that a share refers to; 0 if there is none
    /// @param used the requested bytes in use, until blocks are charged to the limit
    record Home(@Nullable Runnable begin, LongSupplier capacity, LongSupplier used) {
        static final Home NONE = of(() -> 0);

        /// Returns the home of a limit to which blocks are charged from the beginning.
        static Home of(LongSupplier capacity) {
            return new Home(null, capacity, () -> 0);
        }
    }

    /// Whether blocks are charged to this limit.
    private volatile boolean begun;

    MemoryLimit(LimitHandle handle, Home home) {
        this.handle = handle;
        this.home = home;
        this.begun = home.begin() == null;
    }

    /// Creates a limit without a parent.
    ///
    /// @param name a name for messages
    /// @param byteSize the most bytes in use at a time; [Long#MAX_VALUE] for no limit until one is set
    /// @throws IllegalArgumentException if `byteSize` is negative
    public static MemoryLimit of(String name, long byteSize) {
        return new MemoryLimit(LimitHandle.of(name, byteSize, null), Home.NONE);
    }

    /// Creates a limit without a parent, as a share of the memory of all devices together.
    ///
    /// @param name a name for messages
    /// @param share the share of the memory: above 0, at most 1
    /// @throws IllegalArgumentException if `share` is not in this range
    public static MemoryLimit of(String name, DeviceMemory memory, double share) {
        Home home = Home.of(() -> DeviceLimits.capacity(memory));
        return new MemoryLimit(LimitHandle.of(name, part(share, DeviceLimits.capacity(memory)), null), home);
    }

    /// Creates a limit under this one. Blocks that are charged to the new limit count against both.
    ///
    /// @param name a name for messages
    /// @param byteSize the most bytes in use at a time; may be more than this limit, which still applies
    /// @throws IllegalArgumentException if `byteSize` is negative
    public MemoryLimit child(String name, long byteSize) {
        begin();
        return new MemoryLimit(LimitHandle.of(name, byteSize, handle), Home.of(home.capacity()));
    }

    /// Returns the name.
    public String name() {
        return handle.budget().name();
    }

    /// Returns the most bytes that may be in use at a time; [Long#MAX_VALUE] if there is no limit now.
    public long byteSize() {
        return handle.budget().limitBytes();
    }

    /// Returns whether a limit is set.
    public boolean isSet() {
        return byteSize() != Budget.UNLIMITED;
    }

    /// Sets the limit; blocks may already be charged to it. If this lowers the limit, and the allocators
    /// whose blocks are charged to it have reserved more than the new limit, they give idle memory back to
    /// the driver, without waiting. A limit below the bytes in use takes no block away; it refuses
    /// allocations until enough bytes are freed. An allocation that is under way in another thread happens
    /// before the change or after it.
    ///
    /// @param byteSize the most bytes in use at a time from now on
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if this is the first limit of a device or an allocator, and the
    ///     calling thread is in the middle of an allocation or a free, as for [Allocator#close]
    /// @throws RuntimeException if the driver or plug-ins fail while idle memory is given back; the limit
    ///     is still set
    public void setByteSize(long byteSize) {
        Sizes.notNegative("the limit of " + name(), byteSize);
        if (byteSize != Budget.UNLIMITED) {
            begin();
        }
        Budget budget = handle.budget();
        long former = budget.limitBytes();
        budget.setLimitBytes(byteSize);
        if (byteSize < former) {
            budget.trim(byteSize);
        }
    }

    /// Sets the limit, like [#setByteSize], to a share of memory: of the device's memory for a device's
    /// limit and those below it, else of the memory of all devices together.
    ///
    /// @param share the share of the memory: above 0, at most 1
    /// @throws IllegalArgumentException if `share` is not in this range
    /// @throws UnsupportedOperationException if the limit, or the topmost limit above it, was
    ///     [made][#of(String, long)] without a device memory
    public void setShare(double share) {
        long capacity = home.capacity().getAsLong();
        if (capacity == 0) {
            throw new UnsupportedOperationException(
                    name() + " belongs to no DeviceMemory that a share could refer to: see MemoryLimit.of");
        }
        setByteSize(part(share, capacity));
    }

    private static long part(double share, long capacity) {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("share must be above 0 and at most 1, not " + share);
        }
        return share == 1 ? capacity : (long) (share * capacity);
    }

    /// Lifts the limit. Limits above it still hold.
    public void lift() {
        setByteSize(Budget.UNLIMITED);
    }

    private void begin() {
        Runnable beginning = home.begin();
        if (!begun && beginning != null) {
            beginning.run();
            begun = true;
        }
    }

    /// Returns the bytes of the live blocks charged to this limit and to those below it; weakly consistent
    /// while other threads allocate or free, exact while none does.
    public long usedBytes() {
        return begun ? handle.budget().usedBytes() : home.used().getAsLong();
    }

    LimitHandle handle() {
        return handle;
    }

    /// Returns whether the other object is the same limit.
    @Override
    public boolean equals(Object other) {
        return other instanceof MemoryLimit that && that.handle.equals(handle);
    }

    @Override
    public int hashCode() {
        return handle.hashCode();
    }

    /// Returns the name, the limit and the bytes in use of this limit and of those above it.
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(handle.budget().toString());
        for (LimitHandle above = handle.parent(); above != null; above = above.parent()) {
            text.append("; under ").append(above.budget());
        }
        return text.toString();
    }
}
