package io.cistern.diagnostics;

/// What is tried, in this order, when there is no memory for a request, each followed by a new search. The first
/// three are the allocator's own, and `caching` has them all; the others the framework takes for every allocator.
/// Each can be [switched off][io.cistern.DeviceMemory.Builder#reclaimSteps].
public enum ReclaimStep {
    /// Blocks that other threads keep to themselves.
    OTHER_THREADS("other threads' caches"),
    /// Blocks that other streams used, as far as those have got past them.
    PASSED_FENCES("passed fences"),
    /// Idle pages of other places and streams, moved.
    IDLE_PAGES("idle pages, moved"),
    /// Memory of graphs that are gone.
    GRAPHS("graphs that are gone"),
    /// What [listeners][io.cistern.Listeners#onMemoryPressure] free.
    CALLBACKS("callbacks"),
    /// Idle blocks of pools that [lend][io.cistern.MemoryPool.Builder#lendsToOthers].
    LENDING("pools that lend"),
    /// Idle memory of other streams, given back to the driver as far as nobody may still use it.
    TRIM("trim"),
    /// The same, and the allocator's own that lies in pieces, after waiting for the work that may use it. Not for
    /// streams that are captured.
    SYNCHRONIZE("synchronise"),
    /// Idle memory of all other allocators and pools of the device, given back to the driver.
    OTHER_ALLOCATORS("other allocators' idle memory"),
    /// What [stores][io.cistern.Listeners#onMemoryPressure(ReclaimStep, Listeners.MemoryPressure)] take off the
    /// device, to
    /// bring it back when it is used.
    SPILL("spilling"),
    /// Frees of other threads, waited for up to a [bound][io.cistern.DeviceMemory.Builder#waitForFrees].
    FREES("other threads' frees");

    private final String text;

    ReclaimStep(String text) {
        this.text = text;
    }

    /// Its name for people.
    public String text() {
        return text;
    }
}
