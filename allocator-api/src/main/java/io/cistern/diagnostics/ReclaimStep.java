package io.cistern.diagnostics;

/// The steps that are tried, in this order, when there is no memory for a request. After each one the request
/// is tried again. The allocator itself takes the first three, all of which `caching` has; the framework takes
/// the others for every allocator. Each can be [switched off][io.cistern.DeviceMemory.Builder#reclaimSteps].
public enum ReclaimStep {
    /// Blocks in the caches of other threads.
    OTHER_THREADS("other threads' caches"),
    /// Freed blocks that other streams used, if those streams have got past their uses.
    PASSED_FENCES("passed fences"),
    /// Idle pages of other addresses and streams, moved.
    IDLE_PAGES("moved idle pages"),
    /// Memory of graphs that are gone.
    GRAPHS("graphs that are gone"),
    /// Memory that [listeners][io.cistern.Listeners#onMemoryPressure] free.
    CALLBACKS("callbacks"),
    /// Idle blocks of pools that [lend][io.cistern.MemoryPool.Builder#lendsToOthers].
    LENDING("pools that lend"),
    /// Idle memory of other streams that no work may still use, given back to the driver.
    TRIM("trim"),
    /// The same, and the allocator's own idle memory in pieces, after a wait for work that may use it. Captured
    /// streams are not waited for.
    SYNCHRONIZE("synchronise"),
    /// Idle memory of all other allocators and pools of the device, given back to the driver.
    OTHER_ALLOCATORS("other allocators' idle memory"),
    /// Pages that hold little live memory, replaced by smaller ones at the same addresses, while the program
    /// [pauses][io.cistern.Listeners.WorkPause].
    COMPACTION("compaction"),
    /// Memory that [stores][io.cistern.Listeners#onMemoryPressure(ReclaimStep, Listeners.MemoryPressure)] move
    /// off the device until it is used again.
    SPILL("spilling"),
    /// Frees by other threads, waited for up to a [bound][io.cistern.DeviceMemory.Builder#waitForFrees].
    FREES("other threads' frees");

    private final String text;

    ReclaimStep(String text) {
        this.text = text;
    }

    /// Returns its name for people.
    public String text() {
        return text;
    }
}
