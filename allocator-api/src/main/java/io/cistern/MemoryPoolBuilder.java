package io.cistern;

import io.cistern.spi.Availability;
import io.cistern.spi.MemoryReclaim;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.SegmentSource;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// How to open a [MemoryPool]. Without a spec and a source it is `caching`.
///
/// **Threads.** One thread at a time.
public final class MemoryPoolBuilder {
    /// What the pool's allocator calls the source that the program gave.
    static final String OWN_SOURCE = "pool";

    private static final String CACHING = "caching";

    final DeviceMemory memory;
    String tag = "";
    boolean lends;
    private long limitBytes = -1;
    private long initialBytes;
    private int initialDevice;
    private long initialStream;
    private @Nullable SegmentSource source;
    private String spec = CACHING;
    private final Map<String, List<String>> options = new LinkedHashMap<>();

    MemoryPoolBuilder(DeviceMemory memory) {
        this.memory = memory;
    }

    /// What the pool takes its memory from.
    ///
    /// @param spec `NAME` or `NAME:key=value,…` of an allocator, of which the pool has an instance of its own; or
    ///     of a segment source such as `linear`, `pages` or `vmm`: then `caching` on that source
    /// @throws ConfigurationException if it does not follow the grammar
    public MemoryPoolBuilder spec(String spec) {
        AllocatorSpec.parse(spec);
        this.spec = spec;
        return this;
    }

    /// A source of the program's own under the pool's allocator, which must have the option `source`, as
    /// `caching` has. A [io.cistern.spi.PageSource] is used page by page, a [io.cistern.spi.RangeSource] segment
    /// by segment. The pool closes it when its last block is gone, and [#open] does if it fails.
    public MemoryPoolBuilder source(SegmentSource source) {
        this.source = source;
        options.put("source", List.of(OWN_SOURCE));
        return this;
    }

    /// Two functions of the program's own as the source: segments come from the one and go back to the other.
    /// Whatever else it throws, a maker without memory returns 0.
    public MemoryPoolBuilder functions(MemoryPool.SegmentMaker maker, MemoryPool.SegmentDeleter deleter) {
        return source(new FunctionSource(maker, deleter));
    }

    /// A name for statistics and messages.
    public MemoryPoolBuilder tag(String tag) {
        this.tag = tag;
        return this;
    }

    /// Whether idle blocks of the pool serve allocations outside pools, in whatever form, that would else be out
    /// of memory: of [DeviceMemory], [Allocator] and `DeviceBuffer`. Pools don't borrow. A pool
    /// never obtains
    /// memory to lend it. What is lent is a block of the pool, charged to its limits and to that of the scope
    /// that asked, and goes back to it. False without this call.
    public MemoryPoolBuilder lendsToOthers(boolean lends) {
        this.lends = lends;
        return this;
    }

    /// Whether blocks are cut for smaller requests; if not, each is a segment of its own. True without this call.
    public MemoryPoolBuilder splits(boolean splits) {
        options.put("splits", List.of(Boolean.toString(splits)));
        return this;
    }

    /// What all addresses are multiples of, also those of blocks that were cut off others.
    ///
    /// @param byteAlignment a power of two, for `caching` from 256 to 2 MiB
    public MemoryPoolBuilder byteAlignment(long byteAlignment) {
        options.put("alignment", List.of(Long.toString(byteAlignment)));
        return this;
    }

    /// A limit on the bytes requested from the pool at once, on all devices together: never exceeded, and nothing
    /// that fits is refused.
    ///
    /// @throws IllegalArgumentException if it is negative
    public MemoryPoolBuilder limitBytes(long limitBytes) {
        this.limitBytes = notNegative("limitBytes", limitBytes);
        return this;
    }

    /// Memory to obtain at once, so that a first block of this size on that stream, or smaller ones that it is
    /// cut for, need no growth. At most [#limitBytes].
    ///
    /// @throws IllegalArgumentException if it is negative
    public MemoryPoolBuilder initialBytes(long byteSize, int device, long stream) {
        initialBytes = notNegative("initialBytes", byteSize);
        initialDevice = device;
        initialStream = stream;
        return this;
    }

    private static long notNegative(String what, long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException(what + " is negative: " + byteSize);
        }
        return byteSize;
    }

    /// Opens the pool.
    ///
    /// @throws ConfigurationException if there is no such allocator or source, if it can't run here, or if it
    ///     lacks what was asked for: lending, splitting, alignment, a source
    /// @throws IllegalArgumentException if there are more [initial bytes][#initialBytes] than the
    ///     [limit][#limitBytes]
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there are no such initial bytes
    /// @throws IndexOutOfBoundsException if there is no such device for them
    public MemoryPool open() {
        if (limitBytes >= 0 && initialBytes > limitBytes) {
            throw new IllegalArgumentException(
                    "initialBytes is " + initialBytes + ", more than limitBytes, which is " + limitBytes);
        }
        return MemoryPool.open(this);
    }

    Map<String, SegmentSource> ownSource() {
        return source == null ? Map.of() : Map.of(OWN_SOURCE, source);
    }

    @Nullable
    LimitHandle limit() {
        return limitBytes < 0 ? null : LimitHandle.of(tag.isEmpty() ? "pool" : "pool '" + tag + "'", limitBytes, null);
    }

    /// Does what can only be done once the allocator is open.
    void prepare(Allocator allocator) {
        if (lends) {
            requireAbleToLend(allocator);
        }
        if (initialBytes > 0) {
            allocator.opened().reserve(initialBytes, initialDevice, initialStream);
        }
    }

    private static void requireAbleToLend(Allocator allocator) {
        Availability able = allocator
                .extension(MemoryReclaim.class)
                .map(MemoryReclaim::canLend)
                .orElseGet(() -> Availability.no("it has no extension " + MemoryReclaim.class.getName()));
        if (!able.available()) {
            throw new ConfigurationException(allocator + " can't lend: " + able.reason());
        }
    }

    /// The spec with the name of a source completed, and with the options that were set.
    AllocatorSpec resolvedSpec() {
        AllocatorSpec given = memory.catalog().complete(AllocatorSpec.parse(spec));
        Map<String, List<String>> all = new LinkedHashMap<>(given.options());
        all.putAll(options);
        return new AllocatorSpec(given.name(), all, text(given.name(), all));
    }

    private static String text(String name, Map<String, List<String>> options) {
        StringBuilder text = new StringBuilder(name);
        options.forEach((key, values) -> text.append(text.length() == name.length() ? ':' : ',')
                .append(key)
                .append('=')
                .append(values.size() == 1 ? values.getFirst() : "[" + String.join(",", values) + "]"));
        return text.toString();
    }
}
