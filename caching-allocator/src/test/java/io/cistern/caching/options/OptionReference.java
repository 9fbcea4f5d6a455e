package io.cistern.caching.options;

import io.cistern.spi.options.SpecOption;

/// The reference page of the options, from their declarations.
final class OptionReference {
    private static final String HEAD = """
            # Options of `caching`

            Made from `CachingOption` by `OptionReferenceTest`; see there for how to make it anew. In a spec:
            `caching:key=value,key=[a,b]`, in code `new CachingSpec().with(CachingOption.MAX_SPLIT_SIZE_MB, 128L).spec()`.
            A key that is not here, a value that is not legal, and two options that contradict each other are errors that
            say what is legal.

            """;

    private static final String PYTORCH = """

            ## As in PyTorch

            These have PyTorch's names and meaning. A whole string for `PYTORCH_ALLOC_CONF` is taken too:
            `caching:pytorch="max_split_size_mb:128,expandable_segments:True"`. In it `backend:cudaMallocAsync` gives the
            allocator `async` (memory of graphs stays that of `caching`), and PyTorch's keys that are not in this table
            (`pinned_…`, `release_lock_on_cudamalloc`, `graph_capture_record_stream_reuse`, `expandable_segments_reserve…`)
            are warned of and change nothing.

            """;

    private OptionReference() {}

    /// The page.
    static String markdown() {
        return HEAD + SpecOption.table(CachingOption.OWN) + PYTORCH + SpecOption.table(CachingOption.PYTORCH);
    }
}
