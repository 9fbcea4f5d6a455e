package io.cistern.caching.internal.base;

/// Events that a device's cache counts as they happen, off the path of cached allocations.
public enum CacheEvent {
    /// The driver was out of memory; the cache gave idle memory back and tried again.
    RETRY("num_alloc_retries"),
    /// A request failed because no memory was left.
    OUT_OF_MEMORY("num_ooms"),
    /// A request failed at once because it exceeded `per_process_memory_fraction`.
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
    /// A page was mapped when it was created or woken.
    PAGES_MAPPED("pages.mapped"),
    /// A page was unmapped for good or for sleep.
    PAGES_UNMAPPED("pages.unmapped"),
    /// An idle page moved to another place, so that no new page was needed.
    PAGE_TAKEN("pages.taken"),
    /// A page was mapped at one more address and kept those that it had.
    PAGE_ALIASED("pages.aliased"),
    /// A page lost one of several addresses.
    PAGE_UNALIASED("pages.unaliased"),
    /// The host waited for a fence of one stream.
    HOST_WAIT("waits.host"),
    /// A stream was made to wait for another one before it used that stream's memory.
    STREAM_WAIT("waits.stream"),
    /// A page that was freed on one stream moved to another stream.
    STEAL("steals"),
    /// Compaction began to replace pages under live blocks.
    COMPACTION("compaction.count"),
    /// A page was replaced by smaller ones.
    PAGE_SPLIT("pages.split"),
    /// Bytes that compaction copied.
    MOVED_BYTES("compaction.moved_bytes"),
    /// Bytes that compaction gave back to the driver.
    COMPACTED_BYTES("compaction.freed_bytes"),
    /// Compaction put a page on the host, for lack of room on the device.
    PAGE_ON_HOST("compaction.host_pages"),
    /// A request that its shard could not serve mapped no page and took none of another stream: a block had become free
    /// meanwhile, or idle pages of the same stream came home.
    PAGES_HIT("tier.pages.hits"),
    /// A request that its shard could not serve mapped pages, or took pages of another stream.
    PAGES_MISS("tier.pages.misses");

    private final String key;

    CacheEvent(String key) {
        this.key = key;
    }

    public String key() {
        return key;
    }
}
