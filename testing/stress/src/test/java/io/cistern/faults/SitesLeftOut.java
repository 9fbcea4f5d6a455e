package io.cistern.faults;

import io.cistern.faults.FaultSites.Site;
import java.util.regex.Pattern;

/// The sites that no workload has to visit: what is neither part of an allocation, a free, a use, a trim, growth, the
/// reclaim steps, the end of a stream nor the close of an allocator.
final class SitesLeftOut {
    /// What is made once, before the first allocation: device memories, allocators, their options.
    private static final Pattern OPENING = Pattern.compile(
            "(Options?|Spec|Provider|Builder|OptionReader|PoolChoice|PoolLocation|Syntax|ReleaseThreshold)"
                    + "(\\$\\w+)?\\."
                    + "|\\.(PowerTwoDivisions|ConfiguredAllocators)\\."
                    + "|Leaks\\.levelIn|SplitPolicy\\.(none|atMost)|Registry\\.reload|CurrentAllocators\\.configured"
                    + "|\\.(DeviceMemory|Listeners|ModuleSupport|Attachments|Pools|OpenScopes|Registry|Router|Routes"
                    + "|OwnerTable|ThreadTable|BlockUses|ClosingThreads|ScopeStacks|Thresholds|Captures"
                    + "|EventStreams|OtherProcesses|OutOfMemoryHandler|OutOfMemoryReporter|ThresholdNotifier"
                    + "|CurrentAllocators|BlockSites|Leaks|CheckedAllocator|StreamTimeline)"
                    + "\\.(<init>|lambda\\$new\\$\\d+|builder)$");

    /// Exceptions, explanations and figures: they change nothing.
    private static final Pattern TEXTS = Pattern.compile("\\.(equals|hashCode|toString|explained|memorySummary"
            + "|statistics|refusals|whyInPieces|heldByStream|reservedPeakBytes|registeredBytes|registeredSegments)$"
            + "|lambda\\$refusals|AllocatorStatistics\\.|\\.(LazyList|LeakReport|NearestName|SettingProblems)\\."
            + "|OutOfMemoryReporter|OtherProcesses|Leaks\\$AtExit|Leaks\\.(lambda\\$)?dropped"
            + "|OpenScopes(\\$Entry)?\\.(report|warn)"
            + "|CheckedBlocks\\$Block\\.|CheckedBlocks\\.(find|freedOver)|CheckedAllocator\\.withBlock"
            + "|checkInvariants");

    /// Objects that stand over allocators and call them: communicators, memory of other processes, scopes on other
    /// threads; and the end of a whole device memory.
    private static final Pattern OVER_ALLOCATORS = Pattern.compile("\\.async\\.sharing\\.|\\.ScopeCarrier"
            + "|\\.nccl\\.(Collectives?|Communicator|CommunicatorState|Group|Native\\w+|Nccl|NcclApi\\w*|NcclFunction"
            + "|NcclLibrary|Operands|Reduction|BufferRegistration|Simulated\\w+|UniqueId|Window)(\\$\\w+)?\\."
            + "|\\.(DeviceMemory|Captures|EventStreams|EventOrder|Attachments|ThresholdNotifier)\\.(lambda\\$)?close"
            + "|EventOrder\\.destroy|OpenScopes\\.closing");

    /// What happens only while somebody observes, or asks for a snapshot.
    private static final Pattern OBSERVED = Pattern.compile("\\.(Observers|ObservedCalls|ShardSegments)(\\$\\w+)?\\."
            + "|Listeners\\.(onEvent|onRareEvent|annotate)|\\.(lambda\\$)?segments|ReservedBytes\\.(lambda\\$)?pageMoved"
            + "|GraphBlocks\\.freeCompleted");

    /// The same in methods that do more.
    private static final Pattern TOLD = Pattern.compile(" (new MemoryEvent\\$\\w+)$"
            + "|(DeviceMemory|Allocator)\\.(allocate|free|freeAfter):\\d+ dynamic (getAsLong|run)$"
            + "|GraphBlocks\\.free:\\d+ dynamic block$");

    private SitesLeftOut() {}

    static boolean contains(Site site) {
        String method = site.method();
        return site.ofMessage()
                || OPENING.matcher(method).find()
                || TEXTS.matcher(method).find()
                || OVER_ALLOCATORS.matcher(method).find()
                || OBSERVED.matcher(method).find()
                || TOLD.matcher(site.toString()).find();
    }
}
