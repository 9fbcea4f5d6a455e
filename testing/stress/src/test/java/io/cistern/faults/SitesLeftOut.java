package io.cistern.faults;

import io.cistern.faults.FaultSites.Site;
import java.util.regex.Pattern;

/// The sites that no workload has to visit: what is neither part of an allocation, a free, a use, a trim,
/// growth, the reclaim steps, the end of a stream nor the close of an allocator.
final class SitesLeftOut {
    /// What is made once, before the first allocation: device memories, allocators, their options.
    private static final Pattern OPENING = Pattern.compile(
            "(Options?|Spec|Provider|Builder|OptionReader|PoolChoice|PoolLocation|Syntax|ReleaseThreshold)"
                    + "(\\$\\w+)?\\."
                    + "|\\.(PowerTwoDivisions|OwnedAllocators)\\."
                    + "|Leaks\\.levelIn|SplitPolicy\\.(none|atMost)|Events\\.trimmed|Registry\\.reload"
                    + "|CurrentAllocators\\.configured"
                    + "|\\.(DeviceMemory|Listeners|ModuleSupport|Attachments|Pools|OpenScopes|Registry|Router|Routes"
                    + "|OwnerTable|ThreadTable|BlockUses|ClosingThreads|ScopeStacks|Thresholds|Captures"
                    + "|EventStreams|OtherProcesses|OutOfMemoryHandler|OutOfMemoryReporter|ThresholdNotifier|ProgramPause"
                    + "|CurrentAllocators|Observers|BlockSites|Leaks|CheckedAllocator|StreamTimeline|SpillStore)"
                    + "\\.(<init>|lambda\\$new\\$\\d+|builder)$");

    /// Exceptions, explanations and figures: they change nothing.
    private static final Pattern TEXTS = Pattern.compile("\\.(equals|hashCode|toString|explained|memorySummary"
            + "|statistics|refusals|unusable|whyInPieces|heldByStream|reservedPeakBytes|registeredBytes|registeredSegments)$"
            + "|lambda\\$refusals|AllocatorStatistics\\.|\\.(LazyList|LeakReport|NearestName|SettingProblems)\\."
            + "|OutOfMemoryReporter|OtherProcesses|Leaks\\$AtExit|Leaks\\.(lambda\\$)?dropped"
            + "|OpenScopes(\\$Entry)?\\.(report|warn)"
            + "|UnusableSurvey\\.|CheckedBlocks\\$Block\\.|CheckedBlocks\\.(find|freedOver)|CheckedAllocator\\.withBlock"
            + "|checkInvariants|SpillStore\\.open$|SpillableBuffer\\.delete$");

    /// Objects that stand over allocators and call them: communicators, memory of other processes, scopes on other
    /// threads; and the end of a whole device memory.
    private static final Pattern OVER_ALLOCATORS = Pattern.compile("\\.async\\.sharing\\.|\\.ScopeCarrier"
            + "|\\.nccl\\.(Collectives?|Communicator|CommunicatorState|Group|Native\\w+|Nccl|NcclApi\\w*|NcclFunction"
            + "|NcclLibrary|Operands|Reduction|BufferRegistration|Simulated\\w+|UniqueId|Window)(\\$\\w+)?\\."
            + "|\\.(DeviceMemory|Captures|EventStreams|EventOrder|Attachments|ThresholdNotifier)\\.(lambda\\$)?close"
            + "|EventOrder\\.destroy|OpenScopes\\.closing");

    /// What follows a refusal of the driver in a compaction, where tests of `caching` let each call fail.
    private static final Pattern REFUSED_COPIES = Pattern.compile("\\.CopySpace\\.(isIdle|close)$");

    private SitesLeftOut() {}

    static boolean contains(Site site) {
        String method = site.method();
        return site.ofMessage()
                || OPENING.matcher(method).find()
                || TEXTS.matcher(method).find()
                || REFUSED_COPIES.matcher(method).find()
                || OVER_ALLOCATORS.matcher(method).find();
    }
}
