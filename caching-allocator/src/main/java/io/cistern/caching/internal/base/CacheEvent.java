package io.cistern.caching.internal.base;

/// What is counted as it happens, off the path of cached allocations.
public enum CacheEvent {
    /// The driver had no memory, and idle memory was given back to try again.
    RETRY("num_alloc_retries"),
    /// A request failed for want of memory.
    OUT_OF_MEMORY("num_ooms"),
    /// A request failed at `per_process_memory_fraction` at once.
    REJECTION("num_oom_rejections"),
    /// The host waited for all work of the context.
    SYNCHRONIZE_ALL("num_sync_all_streams"),
    /// Memory came from the driver: a segment, or pages mapped together.
    DEVICE_ALLOC("num_device_alloc"),
    /// Memory went back to the driver: a segment, or a page.
    DEVICE_FREE("num_device_free"),
    /// A page was created.
    PAGE_CREATED("pages.created"),
    /// A page was given back to its source.
    PAGE_RELEASED("pages.released"),
    /// A new page was mapped.
    PAGES_MAPPED("pages.mapped"),
    /// A page was unmapped for good.
    PAGES_UNMAPPED("pages.unmapped"),
    /// An idle page moved to another place, where a new one would have been needed.
    PAGE_TAKEN("pages.taken"),
    /// A page got one more address while it kept those it had.
    PAGE_ALIASED("pages.aliased"),
    /// A page lost one of several addresses.
    PAGE_UNALIASED("pages.unaliased"),
    /// The host waited for a fence of one stream.
    HOST_WAIT("waits.host"),
    /// A stream was made to wait for another one, so that it could use its memory.
    STREAM_WAIT("waits.stream"),
    /// A page that moved was freed on one stream and taken by another.
    STEAL("steals"),
    /// Live memory was moved together.
    COMPACTION("compaction.count"),
    /// A page was replaced by smaller ones.
    PAGE_SPLIT("pages.split"),
    /// Bytes that were copied for that.
    MOVED_BYTES("compaction.moved_bytes"),
    /// Bytes that went back to the driver for that.
    COMPACTED_BYTES("compaction.freed_bytes"),
    /// Pages that were idle served what a shard could not, and the driver was not called.
    PAGES_HIT("tier.pages.hits"),
    /// Pages were mapped or made for what a shard could not serve, or another stream's work on them came first.
    PAGES_MISS("tier.pages.misses");

    private final String key;

    CacheEvent(String key) {
        this.key = key;
    }

    public String key() {
        return key;
    }
}
