package io.cistern.diagnostics;

/// The steps that are tried, in this order, when there is no memory for a request. After each step that
/// gave something, the request is tried again. An allocator itself takes the first three steps; `caching`
/// takes all three. The framework takes the others for every allocator. Each step can be [switched
/// off][io.cistern.DeviceMemory.Builder#reclaimSteps].
public enum ReclaimStep {
    /// Uses blocks in the caches of other threads.
    OTHER_THREADS("other threads' caches"),
    /// Uses freed blocks that other streams used, if those streams have completed their uses.
    PASSED_FENCES("passed fences"),
    /// Remaps idle pages from other addresses and streams for the request.
    IDLE_PAGES("moved idle pages"),
    /// Uses the memory of graphs that are gone.
    GRAPHS("graphs that are gone"),
    /// Asks [listeners][io.cistern.Listeners#onMemoryPressure] to free memory.
    CALLBACKS("callbacks"),
    /// Uses an idle block of a pool that [lends][io.cistern.MemoryPool.Builder#lendsToOthers].
    LENDING("pools that lend"),
    /// Gives idle memory of the refusing allocator back to the driver, without waiting: only memory that no
    /// work may still use.
    TRIM("trim"),
    /// Waits for work that may still use freed memory, so that this memory can serve the request or go back
    /// to the driver: first for the work of other streams; then also for that of the request's own stream,
    /// whose free memory may be too fragmented. Does not wait for captured streams.
    SYNCHRONIZE("synchronise"),
    /// Gives idle memory of all other allocators and pools of the device back to the driver: first without
    /// waiting; then, if [#SYNCHRONIZE] is on, after their work.
    OTHER_ALLOCATORS("other allocators' idle memory"),
    /// Replaces pages that hold little live memory by smaller ones at the same addresses, while the program
    /// [pauses][io.cistern.Listeners.WorkPause].
    COMPACTION("compaction"),
    /// Asks [stores][io.cistern.Listeners#onMemoryPressure(ReclaimStep, Listeners.MemoryPressure)] to move
    /// memory off the device until it is used again.
    SPILL("spilling"),
    /// Waits for other threads to free memory, for at most a [given
    /// time][io.cistern.DeviceMemory.Builder#waitForFrees].
    FREES("other threads' frees");

    private final String text;

    ReclaimStep(String text) {
        this.text = text;
    }

    /// Returns the step's human-readable name.
    public String text() {
        return text;
    }
}
