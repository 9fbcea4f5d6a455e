package io.cistern.faults;

import io.cistern.faults.FaultSites.Site;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// The sites that no workload has to visit: what is neither part of an allocation, a free, a use, a trim, growth, the
/// reclaim steps, the end of a stream nor the close of an allocator; and what is known to be left, by method.
final class SitesLeftOut {
    /// What is made once, before the first allocation: device memories, allocators, their options.
    private static final Pattern OPENING = Pattern.compile(
            "(Options?|Spec|Provider|Builder|OptionReader|PoolChoice|PoolLocation|Syntax|ReleaseThreshold)"
                    + "(\\$\\w+)?\\."
                    + "|\\.(PowerTwoDivisions|PyTorchString|ConfiguredAllocators)\\."
                    + "|Leaks\\.levelIn|SplitPolicy\\.(none|atMost)|Registry\\.reload|CurrentAllocators\\.configured"
                    + "|\\.(DeviceMemory|Listeners|ModuleSupport|Attachments|Pools|OpenScopes|Registry|Router|Routes"
                    + "|OwnerTable|ThreadTable|BlockUses|ClosingThreads|ScopeStacks|Thresholds|Captures"
                    + "|EventStreams|OtherProcesses|OutOfMemoryHandler|OutOfMemoryReporter|ThresholdNotifier"
                    + "|CurrentAllocators|BlockSites|Leaks|CheckedAllocator|StreamTimeline)"
                    + "\\.(<init>|lambda\\$new\\$\\d+|builder)$");

    /// Exceptions, explanations and figures: they change nothing.
    private static final Pattern TEXTS = Pattern.compile("\\.(equals|hashCode|toString|explained|memorySummary"
            + "|statistics|refusals|whyInPieces|heldByStream|reservedPeakBytes|registeredBytes|registeredSegments)$"
            + "|lambda\\$refusals|AllocatorStatistics\\.|\\.(LeakReport|NearestName|SettingProblems)\\."
            + "|OutOfMemoryReporter|OtherProcesses|Leaks\\$AtExit|OpenScopes(\\$Entry)?\\.(report|warn)"
            + "|CheckedBlocks\\$Block\\.|CheckedBlocks\\.(find|freedOver)|CheckedAllocator\\.withBlock"
            + "|checkInvariants");

    /// Objects that stand over allocators and call them: communicators, memory of other processes, scopes on other
    /// threads; and the end of a whole device memory.
    private static final Pattern OVER_ALLOCATORS = Pattern.compile("\\.async\\.sharing\\.|\\.ScopeCarrier"
            + "|\\.nccl\\.(Collectives?|Communicator|CommunicatorState|Group|Native\\w+|Nccl|NcclApi\\w*|NcclFunction"
            + "|NcclLibrary|Operands|Reduction|BufferRegistration|Simulated\\w+|UniqueId|Window)(\\$\\w+)?\\."
            + "|\\.(DeviceMemory|Captures|EventStreams|EventOrder|Attachments|ThresholdNotifier)\\.(lambda\\$)?close"
            + "|EventOrder\\.destroy|OpenScopes\\.closing");

    private static final Set<String> NOT_YET = read();

    private SitesLeftOut() {}

    static boolean contains(Site site) {
        String method = site.method();
        return site.ofMessage()
                || OPENING.matcher(method).find()
                || TEXTS.matcher(method).find()
                || OVER_ALLOCATORS.matcher(method).find();
    }

    /// Whether it is known that no workload reaches it yet, though one should.
    static boolean isKnown(Site site) {
        return NOT_YET.contains(site.method());
    }

    private static Set<String> read() {
        try (InputStream file = SitesLeftOut.class.getResourceAsStream("not-reached-yet.txt")) {
            return new String(file.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .collect(Collectors.toSet());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
