package io.cistern.faults;

import io.cistern.faults.FaultSites.Site;
import java.util.regex.Pattern;

/// The sites that no workload has to visit: what is neither part of an allocation, a free, a use, a trim, growth,
/// the
/// reclaim steps, the end of a stream nor the close of an allocator.
final class SitesLeftOut {
    /// What is made once, before the first allocation: device memories, allocators, their options.
    private static final Pattern OPENING = Pattern.compile(
            "(Options?|Spec|Provider|Builder|OptionReader|PoolChoice|PoolLocation|Syntax|ReleaseThreshold)"
                    + "(\\$\\w+)?\\."
                    + "|\\.(PowerTwoDivisions|ConfiguredAllocators)\\."
                    + "|Leaks\\.levelIn|SplitPolicy\\.(none|atMost)|Events\\.trimmed|Registry\\.reload"
                    + "|CurrentAllocators\\.configured"
                    + "|\\.(DeviceMemory|Listeners|ModuleSupport|Attachments|Pools|OpenScopes|Registry|Router|Routes"
                    + "|OwnerTable|ThreadTable|BlockUses|ClosingThreads|ScopeStacks|Thresholds|Captures"
                    + "|EventStreams|OtherProcesses|OutOfMemoryHandler|OutOfMemoryReporter|ThresholdNotifier"
                    + "|CurrentAllocators|Observers|BlockSites|Leaks|CheckedAllocator|StreamTimeline)"
                    + "\\.(<init>|lambda\\$new\\$\\d+|builder)$");

    /// Exceptions, explanations and figures: they change nothing.
    private static final Pattern TEXTS = Pattern.compile("\\.(equals|hashCode|toString|explained|memorySummary"
            + "|statistics|refusals|unusable|heldByStream|reservedPeakBytes|registeredBytes|registeredSegments)$"
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

    /// Live memory that moves: driver calls fail there in tests of `caching`, the Java heap does not yet.
    private static final Pattern COMPACTION = Pattern.compile("\\.caching\\.internal\\.compact\\.|CacheCompaction"
            + "|CompactionResult|ProgramPause|Listeners\\.(lambda\\$)?onCompaction|PhysicalPages(\\$Stranded)?\\.(strand|<init>)"
            + "|PhysicalPages\\.(reserveStranded|releaseStranded)|GrowingShard\\.(exchange|claimFree|lambda\\$exchange)"
            + "|OutOfMemoryHandler\\.(lambda\\$)?compact|OpenAllocator\\.(lambda\\$)?compact"
            + "|Allocator\\.compact|MemoryPool\\.compact");

    private SitesLeftOut() {}

    static boolean contains(Site site) {
        String method = site.method();
        return site.ofMessage()
                || OPENING.matcher(method).find()
                || TEXTS.matcher(method).find()
                || COMPACTION.matcher(method).find()
                || OVER_ALLOCATORS.matcher(method).find();
    }
}
