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
                    + "|OpenContext\\.openAllocator$|Leaks\\.(levelIn|reportBy)|Events\\.(trimmed|refused)|DriverPool\\.prime"
                    + "|CurrentAllocators\\.(lambda\\$)?(open|owned|find|choice|withAllProblems|reload)"
                    + "|\\.(DeviceMemory|Listeners|ModuleSupport|Attachments|Pools|OpenScopes|Registry|Router|Routes"
                    + "|OwnerTable|ThreadTable|BlockUses|ClosingThreads|ScopeStacks|DeviceMeters|Captures"
                    + "|EventStreams|OtherProcesses|OutOfMemoryHandler|OutOfMemoryReporter|ThresholdNotifier|ProgramPause"
                    + "|CurrentAllocators|Observers|BlockSites|Leaks|CheckedAllocator|StreamTimeline|SpillStore)"
                    + "\\.(<init>|lambda\\$new\\$\\d+|builder)$");

    /// Exceptions, explanations and figures: they change nothing.
    private static final Pattern TEXTS = Pattern.compile("\\.(equals|hashCode|toString|explained|memorySummary"
            + "|statistics|refusals|unusable|whyInPieces|heldByStream|reservedPeakBytes|registeredBytes|registeredSegments)$"
            + "|lambda\\$refusals|AllocatorStatistics\\.|\\.(LazyList|LeakReport|NearestName|SettingProblems|SpecProblems)\\."
            + "|OutOfMemoryReporter|OtherProcesses|Leaks\\$AtExit|Leaks\\.reportAll|Leaks\\.(lambda\\$)?dropped"
            + "|OpenScopes(\\$Entry)?\\.(report|warn)"
            + "|UnusableSurvey\\.|CheckedBlocks\\$Block\\.|CheckedBlocks\\.(find|freedOver)|CheckedAllocator\\.withBlock"
            + "|AllocatorCalls\\.known|checkInvariants|OpenAllocator.compaction$|SpillStore\\.open$|SpillableBuffer\\.delete$"
            + "|AddressCheck\\.overlap|TaskThreads\\.check|BlockOwners\\$Table\\.addTasks"
            + "|Arbitration\\.(check|lines|othersHold|whereIts)");

    /// Objects that stand over allocators and call them: communicators, memory of other processes, scopes on other
    /// threads; and the end of a whole device memory.
    private static final Pattern OVER_ALLOCATORS = Pattern.compile("\\.async\\.sharing\\.|\\.ScopeCarrier"
            + "|\\.nccl\\.(internal\\.call\\.)?(Collectives?|Communicator|CommunicatorState|Group|Native\\w+|Nccl|NcclApi\\w*|NcclFunction"
            + "|NcclLibrary|Operands|Reduction|BufferRegistration|Simulated\\w+|UniqueId|Window)(\\$\\w+)?\\."
            + "|\\.(DeviceMemory|Captures|EventStreams|EventOrder|Attachments|ThresholdNotifier|Leaks)\\.(lambda\\$)?close"
            + "|LastStreams\\.(lambda\\$)?close|SpillStore\\.closeStream|EventStreams\\.isDestroyed"
            + "|EventOrder\\.destroy|OpenScopes\\.closing");

    /// What follows a refusal of the driver in a compaction, where tests of `caching` let each call fail.
    private static final Pattern REFUSED_COPIES = Pattern.compile("\\.CopySpace\\.(isIdle|close)$");

    /// What calls libraries and kernels that are not there.
    private static final Pattern LIBRARIES =
            Pattern.compile("\\.buffers\\.Cuda(Module|Function)\\.|\\.buffers\\.internal\\.");

    /// Figures, reports and empty answers of buffers and handles; what only a driver that refuses, a thread that
    /// waits or another library brings about.
    private static final Pattern SELDOM =
            Pattern.compile("\\.buffers\\.(PinnedStatistics(\\$\\w+)?\\.|PageableCopies\\.report"
                    + "|PinnedBlock\\.((lambda\\$)?await|waitForAll)|StagingPieces\\.(await|lambda\\$takeAll)|ForeignMemory\\.keep"
                    + "|PinnedMemory\\.(emptyOrTooLarge|isKept|takeBack|trimIfClosed|restsHere|ends|streamClosing|(lambda\\$)?close)"
                    + "|IndependentCopies\\.submit|CopyBatch\\.onDevice|DeviceCopies\\.order|DeviceArena\\.(grow|newChunk)"
                    + "|dlpack\\.(SharedTensors\\$Stub|ReceivedTensor\\.array|DlpackTensor\\.(flags|<init>)))"
                    + "|\\.handles\\.(HandlePool\\$OpenPools\\.(lambda\\$)?close|HandlePool\\.(look|(lambda\\$)?leasing)"
                    + "|PooledHandle\\.(lambda\\$)?(graphUse|known|addedUse|drop|graphIsGone)|HandleLibrary\\.of"
                    + "|DeviceHandles\\.(await|tooMany)|Places\\.enter)"
                    + "|Registry\\.chargeMeanwhile|threads\\.Turn\\.begin|ReclaimAttempt\\.(awaitGraphs|after)");

    private SitesLeftOut() {}

    static boolean contains(Site site) {
        String method = site.method();
        return site.ofMessage()
                || OPENING.matcher(method).find()
                || TEXTS.matcher(method).find()
                || REFUSED_COPIES.matcher(method).find()
                || LIBRARIES.matcher(method).find()
                || SELDOM.matcher(method).find()
                || OVER_ALLOCATORS.matcher(method).find();
    }
}
