package io.cistern.caching.options;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;
import java.util.function.LongPredicate;
import java.util.stream.Stream;

/// An option of the allocator `caching`: its key, its legal values and its meaning. Specs, code,
/// messages and the reference table all use this declaration.
///
/// The options in [#PYTORCH] have PyTorch's names and meaning. They may also be given in a
/// PyTorch string: `caching:pytorch="expandable_segments:True,per_process_memory_fraction:0.5"`.
///
/// @param <T> the type of the option's value
public final class CachingOption<T> extends SpecOption<T> {
    /// The spec of the segment source that memory comes from.
    public static final CachingOption<String> SOURCE = new CachingOption<>(
            "source",
            "the spec of a segment source: `pages`, `linear`, `managed`, `driver_pool`, `vmm`, `nccl`, …",
            "`pages`; without `expandable_segments`, `linear`",
            "where memory comes from",
            TEXT);

    /// The size of every page, in bytes: from 2 MiB to 1 GiB.
    public static final CachingOption<Long> PAGE_SIZE = new CachingOption<>(
            "page_size",
            "from 2MiB to 1GiB",
            "2 MiB for small blocks; `fit` decides for large ones",
            "the size of every physical page",
            bytes(size -> size >= 2L << 20 && size <= 1L << 30));

    /// How closely the pages of large blocks follow the live bytes.
    public static final CachingOption<PageFit> FIT = new CachingOption<>(
            "fit",
            "`usual`, `tight`; `tight` not with `page_size`",
            "`usual`",
            "the size of pages for large blocks (`PageFit`); `tight` takes less memory, but the first pass"
                    + " takes longer",
            wordOf(PageFit.class));

    /// Whether idle pages of one stream serve another.
    public static final CachingOption<PageReuse> REUSE = new CachingOption<>(
            "reuse",
            "`never`, `adaptive`, `wait`",
            "`adaptive`",
            "when idle pages of one stream serve another. `never`: after their stream has ended. `wait`: at"
                    + " once; the other stream waits on the device for the work on them. `adaptive`: after that work;"
                    + " but like `wait` with `fit=tight`, or when much memory is reserved (`PageReuse`)",
            wordOf(PageReuse.class));

    /// Whether a virtual page keeps its physical page for life, so that no page moves.
    public static final CachingOption<Boolean> STABLE_MAPPING = new CachingOption<>(
            "stable_mapping",
            "`true`, `false`",
            "`false`",
            "whether virtual pages keep their physical pages; then none moves",
            YES_OR_NO);

    /// The most bytes of live pages that one compaction may copy; 0 for no compaction.
    public static final CachingOption<Long> COMPACTION_BYTES = new CachingOption<>(
            "compaction_bytes",
            "bytes, such as `1GiB`; 0 for none",
            "4GiB",
            "the maximum bytes that one compaction may copy",
            bytes(size -> size >= 0));

    /// The alignment of all addresses, in bytes: a power of two from 256 to 2 MiB.
    public static final CachingOption<Long> ALIGNMENT = new CachingOption<>(
            "alignment",
            "a power of two from 256 to 2MiB",
            "256",
            "all addresses are multiples of it",
            bytes(size -> size >= 256 && size <= 2L << 20 && Long.bitCount(size) == 1));

    /// Whether blocks are split for smaller requests.
    public static final CachingOption<Boolean> SPLITS = new CachingOption<>(
            "splits",
            "`true`, `false`",
            "`true`",
            "whether blocks are split for smaller requests; if not, each block is a segment",
            YES_OR_NO);

    /// Whether threads keep some of the blocks that they freed.
    public static final CachingOption<Boolean> THREAD_CACHES = new CachingOption<>(
            "thread_caches",
            "`true`, `false`",
            "`true`",
            "whether each thread keeps some freed blocks; not with an `alignment` above 512 or `splits=false`",
            YES_OR_NO);

    /// The most bytes of small blocks that each thread keeps: from 1 MiB to 1 GiB.
    public static final CachingOption<Long> THREAD_CACHE_BYTES = new CachingOption<>(
            "thread_cache_bytes",
            "from 1MiB to 1GiB",
            "32MiB",
            "the maximum bytes of small blocks that each thread keeps",
            bytes(size -> size >= 1L << 20 && size <= 1L << 30));

    /// The bytes obtained from the source with the first request on each device.
    public static final CachingOption<Long> INITIAL_BYTES = new CachingOption<>(
            "initial_bytes",
            "bytes, such as `1GiB`; at most `max_bytes`",
            "0",
            "the bytes that the first request on each device reserves, for its stream",
            bytes(size -> size >= 0));

    /// The most bytes that the allocator reserves of each device's memory; at least one page.
    public static final CachingOption<Long> MAX_BYTES = new CachingOption<>(
            "max_bytes",
            "bytes from 2MiB (a page), such as `8GiB`; not with `per_process_memory_fraction`",
            "no limit",
            "the maximum reserved bytes on each device",
            bytes(size -> size >= 2L << 20));

    /// How much the allocator checks.
    public static final CachingOption<CheckLevel> CHECK = new CachingOption<>(
            "check",
            "`off`, `checked`, `paranoid`",
            "property `cistern.check`, else `off`",
            "the level of checks (`CheckLevel`)",
            wordOf(CheckLevel.class));

    /// Whether memory grows by pages in large address ranges, or by plain segments.
    public static final CachingOption<Boolean> EXPANDABLE_SEGMENTS = new CachingOption<>(
            "expandable_segments",
            "`true`, `false`",
            "`true` where the source has pages",
            "whether memory grows by pages instead of plain segments",
            YES_OR_NO);

    /// The most that the allocator reserves, as a share of the device's memory: from 0 to 1.
    public static final CachingOption<Double> PER_PROCESS_MEMORY_FRACTION = new CachingOption<>(
            "per_process_memory_fraction",
            "a fraction from 0 to 1",
            "`1`",
            "the maximum share of each device that is reserved; at least 2 MiB",
            FRACTION);

    /// Whether a request that would exceed the fraction fails immediately, without reclaiming or waiting.
    public static final CachingOption<Boolean> THROW_ON_CUDAMALLOC_OOM = new CachingOption<>(
            "throw_on_cudamalloc_oom",
            "`true`, `false`; `true` needs `per_process_memory_fraction`",
            "`false`",
            "whether a request above that fraction fails without reclaim steps",
            YES_OR_NO);

    /// A configuration string of PyTorch.
    public static final SpecOption<String> PYTORCH_CONFIGURATION = SpecOption.of(
            "caching",
            "pytorch",
            "a string for `PYTORCH_ALLOC_CONF`, in quotes: `\"expandable_segments:True,per_process_memory_fraction:0.5\"`",
            "none",
            "the three options above in PyTorch's syntax; `backend:cudaMallocAsync` selects the allocator `async`;"
                    + " other keys only cause a warning",
            TEXT);

    /// The options with PyTorch's names and meaning.
    public static final List<CachingOption<?>> PYTORCH =
            List.of(EXPANDABLE_SEGMENTS, PER_PROCESS_MEMORY_FRACTION, THROW_ON_CUDAMALLOC_OOM);

    /// Cistern's own options.
    public static final List<CachingOption<?>> OWN = List.of(
            SOURCE,
            PAGE_SIZE,
            FIT,
            REUSE,
            STABLE_MAPPING,
            COMPACTION_BYTES,
            ALIGNMENT,
            SPLITS,
            THREAD_CACHES,
            THREAD_CACHE_BYTES,
            INITIAL_BYTES,
            MAX_BYTES,
            CHECK);

    /// All options, in the order of the reference.
    public static final List<SpecOption<?>> ALL = Stream.<List<? extends SpecOption<?>>>of(
                    OWN, PYTORCH, List.of(PYTORCH_CONFIGURATION))
            .<SpecOption<?>>flatMap(List::stream)
            .toList();

    /// Returns a reader of byte counts that rejects illegal ones.
    private static Reader<Long> bytes(LongPredicate legal) {
        return (options, key) -> {
            Optional<Long> given = options.bytes(key);
            if (given.isPresent() && !legal.test(given.get())) {
                throw new ConfigurationException("option '" + key + "' of 'caching': " + given.get() + " is invalid");
            }
            return given;
        };
    }

    private CachingOption(String key, String legal, String usual, String meaning, Reader<T> reader) {
        super("caching", key, legal, usual, meaning, reader, SpecOption::text);
    }
}
