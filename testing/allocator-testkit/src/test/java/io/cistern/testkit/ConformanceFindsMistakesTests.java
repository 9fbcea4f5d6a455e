package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectNestedClass;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Stream;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/// A suite that passes everything proves nothing: broken allocators must fail it, in the test that is about their
/// mistake.
class ConformanceFindsMistakesTests {
    private static Function<AllocatorContext, DeviceAllocator> factory = overDriver(BrokenAllocators.Sound::new);

    private static Function<AllocatorContext, DeviceAllocator> overDriver(
            Function<CudaDriver, DeviceAllocator> candidate) {
        return context -> candidate.apply(context.extension(CudaDriver.class).orElseThrow());
    }

    /// Not found by the build: its name does not end as those of tests do.
    static class Candidate extends AllocatorConformance {
        @Override
        protected Allocator open(DeviceMemory memory) {
            return memory.open("candidate");
        }

        @Override
        protected Catalog catalog() {
            Catalog found = DiscoveredCatalog.find();
            return Catalog.of(
                    List.of(new CandidateProvider(), new UsesProvider(), found.allocator("direct")),
                    List.of(found.source("linear")));
        }
    }

    private static final class CandidateProvider implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "candidate";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return factory.apply(context);
        }
    }

    /// An upstream that handles uses on several streams itself.
    private static final class UsesProvider implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "uses";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new BrokenAllocators.TakesUses(
                    context.extension(CudaDriver.class).orElseThrow());
        }
    }

    private static Set<String> failuresOf(String part, Function<CudaDriver, DeviceAllocator> candidate) {
        return causesOf(part, candidate).keySet();
    }

    /// Failed tests, and why each failed.
    private static Map<String, Throwable> causesOf(String part, Function<CudaDriver, DeviceAllocator> candidate) {
        return causesInContext(part, overDriver(candidate));
    }

    private static Map<String, Throwable> causesInContext(
            String part, Function<AllocatorContext, DeviceAllocator> candidate) {
        factory = candidate;
        return FailedTests.of(selectNestedClass(List.of(Candidate.class), part(part)));
    }

    private static Class<?> part(String name) {
        return Stream.of(AllocatorConformance.class.getDeclaredClasses())
                .filter(part -> part.getSimpleName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aSoundAllocatorPasses() {
        for (String part : List.of(
                "BasicTests",
                "CapacityTests",
                "TrimTests",
                "OrderTests",
                "StatisticsTests",
                "DeviceTests",
                "FaultTests")) {
            assertThat(failuresOf(part, BrokenAllocators.Sound::new)).as(part).isEmpty();
        }
    }

    @Test
    void aSoundAllocatorThatKeepsMemoryPasses() {
        for (String part : List.of("TrimTests", "OrderTests")) {
            assertThat(causesOf(part, BrokenAllocators.KeepsByStream::new))
                    .as(part)
                    .isEmpty();
        }
    }

    @Test
    void memoryThatGrowsWithEachFreeIsFound() {
        assertThat(failuresOf("CapacityTests", BrokenAllocators.KeepsALittle::new))
                .contains("equalRoundsNeedNoMoreMemoryThanTheFirst");
    }

    @Test
    void eventsThatAreNotReleasedAreFound() {
        assertThat(failuresOf("CapacityTests", driver -> new BrokenAllocators.KeepsEvents(driver, true)))
                .containsExactly("equalRoundsNeedNoMoreMemoryThanTheFirst");
        assertThat(causesOf("BasicTests", driver -> new BrokenAllocators.KeepsEvents(driver, false)))
                .hasSizeGreaterThan(1)
                .allSatisfy((_, cause) -> assertThat(cause).hasMessageContaining("its close() does not release"));
    }

    @Test
    void reuseOutOfStreamOrderIsFound() {
        assertThat(failuresOf("OrderTests", BrokenAllocators.IgnoresStreamOrder::new))
                .contains(
                        "memoryFreedOnAStreamIsNotOverwrittenByAnotherBeforeTheFree",
                        "memoryFreedOnAnotherStreamIsNotOverwrittenTooEarly");
    }

    @Test
    void whatATrimKeptAndHandedToAnotherStreamIsFound() {
        assertTrimIsFound(BrokenAllocators.SharesWhatATrimKeeps::new);
    }

    @Test
    void whatTheDriverRefusedAndATrimHandedToAnotherStreamIsFound() {
        assertTrimIsFound(BrokenAllocators.SharesWhatTheDriverRefuses::new);
    }

    private static void assertTrimIsFound(Function<CudaDriver, DeviceAllocator> candidate) {
        assertThat(causesOf("TrimTests", candidate))
                .hasEntrySatisfying(
                        "anotherStreamGetsNothingBeforeTheFreeHasPassed",
                        cause -> assertThat(cause)
                                .hasMessageMatching(
                                        "(?s).*likely cause: stream 0x\\w+ got it, .* before stream 0x\\w+ had passed its"
                                                + " free; keep a freed block for the stream of its free, or record a"
                                                + " fence.*"));
    }

    @Test
    void aStreamOfEachThreadTakenForOneStreamIsFound() {
        assertThat(causesOf("OrderTests", BrokenAllocators.KeepsByHandle::new))
                .containsOnlyKeys("whatAThreadsOwnStreamFreedIsNotOverwrittenByAnotherThread")
                .allSatisfy((_, cause) -> assertThat(cause)
                        .hasMessageMatching(
                                "(?s).*stream 0x2 of thread second got it, .* before stream 0x2 of thread main"
                                        + " had passed its free; 0x2 is the per-thread default stream, another stream on each"
                                        + " thread: keep what is freed on it by thread.*"));
    }

    @Test
    void memoryReusedWhileTheEndedStreamOfItsFreeRunsIsFound() {
        assertThat(causesInContext(
                        "StreamTests",
                        context -> new BrokenAllocators.KeepsWhatEndedStreamsFree(context.upstream("uses"))))
                .containsOnlyKeys("memoryFreedOnAnEndedStreamWaitsForItsWork")
                .allSatisfy((_, cause) -> assertThat(cause)
                        .hasMessageMatching(
                                "(?s).*likely cause: stream 0x\\w+ got it,.* before stream 0x\\w+, which had"
                                        + " ended before the free, had done its work; streamClosing had announced that end,"
                                        + " so .* keep such a block until all work so far on the device is done.*"));
    }

    @Test
    void aHandleThatIsTakenForItsNewStreamAloneIsFound() {
        assertThat(causesInContext(
                        "StreamTests",
                        context -> new BrokenAllocators.ForgetsEndsWhenHandlesComeAgain(context.upstream("uses"))))
                .containsOnlyKeys("memoryFreedOnAnEndedStreamWaitsForItsWork");
    }

    @Test
    void memoryThatTheDriverRefusedAndTheAllocatorForgotIsFound() {
        assertThat(causesOf("FaultTests", BrokenAllocators.ForgetsRefusals::new))
                .containsOnlyKeys("whatTheDriverRefusesOnceIsGivenBackLater")
                .allSatisfy((_, cause) -> assertThat(cause)
                        .hasMessageContaining("candidate forgets memory that the driver refuses to take back once, in"
                                + " free (MEM_FREE): it must keep it"));
        assertThat(causesOf("FaultTests", BrokenAllocators.ClosesOnce::new))
                .hasEntrySatisfying(
                        "whatTheDriverRefusesOnceIsGivenBackLater",
                        cause -> assertThat(cause).hasMessageContaining("in close (MEM_FREE)"));
    }

    @Test
    void aTrimThatSaysMoreThanItGaveBackIsFound() {
        assertThat(failuresOf("TrimTests", BrokenAllocators.OverstatesTrims::new))
                .containsExactlyInAnyOrder(
                        "anotherStreamGetsNothingBeforeTheFreeHasPassed", "theStreamOfTheFreesGoesOn");
    }

    @Test
    void anErrorThatLeavesTheAnnouncementOfAWaitIsFound() {
        assertThat(causesOf("FaultTests", BrokenAllocators.ThrowsInStreamWaits::new))
                .containsOnlyKeys("anAnnouncedWaitDoesNotThrow")
                .allSatisfy((_, cause) -> assertThat(cause)
                        .hasMessage("candidate threw in streamWaits, which must not throw:"
                                + " java.lang.IllegalStateException: it waits"));
    }

    @Test
    void blocksThatAreTooShortAreFound() {
        assertThat(failuresOf("BasicTests", BrokenAllocators.Short::new)).contains("addressesAreMultiplesOf256");
    }

    @Test
    void leaksAreFound() {
        assertThat(failuresOf("BasicTests", BrokenAllocators.Leaks::new)).contains("oneByteIsABlock");
    }

    @Test
    void memoryOfTheWrongDeviceIsFound() {
        assertThat(failuresOf("DeviceTests", BrokenAllocators.KnowsOneDevice::new))
                .contains("memoryComesFromTheDeviceAskedFor");
    }

    @Test
    void anUntypedOutOfMemoryIsFound() {
        assertThat(failuresOf("CapacityTests", BrokenAllocators.HidesOutOfMemory::new))
                .contains("moreThanTheDeviceHasIsOutOfMemoryAndTheNextAllocationWorks");
    }

    @Test
    void reservedBytesBelowTheLiveOnesAreFound() {
        assertThat(failuresOf("StatisticsTests", BrokenAllocators.Understates::new))
                .contains("reservedBytesCoverWhatIsLiveAndAgreeWithTheDriver");
    }

    @Test
    void misalignedAddressesAreFound() {
        assertThat(failuresOf("BasicTests", BrokenAllocators.Misaligned::new)).contains("addressesAreMultiplesOf256");
    }

    @Test
    void aFailedThreadEndsTheOthers() {
        Map<String, Throwable> causes = causesOf("ConcurrencyTests", BrokenAllocators.BreaksDown::new);
        assertThat(causes)
                .containsKeys("oneThreadAllocatesAndAnotherFrees", "oneThreadAllocatesAndAnotherFreesOnTheSameStream");
        assertThat(causes.values())
                .allSatisfy(cause -> assertThat(cause).hasStackTraceContaining(BrokenAllocators.BreaksDown.MESSAGE));
    }

    @Test
    void aSoundAllocatorOverAnotherPasses() {
        assertThat(causesInContext("BasicTests", context -> new BrokenAllocators.Around(context.upstream("direct"))))
                .isEmpty();
    }

    @Test
    void aSoundAllocatorThatKeepsBlocksOfAnotherPasses() {
        for (String part : List.of("BasicTests", "OrderTests", "UseTests", "StreamTests")) {
            assertThat(causesInContext(part, context -> new BrokenAllocators.Keeps(context.upstream("uses"))))
                    .as(part)
                    .isEmpty();
        }
    }

    @Test
    void aBlockThatIsHandedOutTwiceIsNamedAtOnce() {
        assertThat(causesInContext(
                        "BasicTests", context -> new BrokenAllocators.HandsOutTwice(context.upstream("direct"))))
                .hasEntrySatisfying(
                        "aFreedBlockIsHandedOutOnce",
                        cause -> assertThat(cause)
                                .hasMessageMatching("allocator candidate returned (0x\\w+) for 512 bytes on device 0,"
                                        + " where a live block already begins: \\1 of 512 bytes"));
    }

    @Test
    void anAbilityPassedOnByAnAllocatorThatKeepsBlocksIsNamed() {
        for (String part : List.of("BasicTests", "UseTests")) {
            assertThat(causesInContext(
                            part, context -> new BrokenAllocators.KeepsAndPassesOn(context.upstream("uses"))))
                    .isNotEmpty()
                    .allSatisfy((_, cause) -> assertThat(cause)
                            .hasMessageMatching("candidate handed out 0x\\w+ again, which it kept after its free, but"
                                    + " passes on StreamUses of upstream uses,.* override extension\\(\\).*"));
        }
    }

    @Test
    void whatGoesBackUpstreamWithAWrongSizeIsFound() {
        assertBasicFailure(
                context -> new BrokenAllocators.FreesHalf(context.upstream("direct")),
                "candidate freed 0x\\w+ of upstream direct with 2048 bytes on device 0; it was obtained with 4096 bytes on"
                        + " device 0");
    }

    @Test
    void whatGoesBackUpstreamTwiceIsFound() {
        assertBasicFailure(
                context -> new BrokenAllocators.FreesTwice(context.upstream("direct")),
                "candidate freed 0x\\w+ of upstream direct with 4096 bytes on device 0, which it does not hold: it"
                        + " never got this memory, or gave it back before; .*");
    }

    @Test
    void whatGoesBackToASourceWithAWrongSizeIsFound() {
        assertBasicFailure(
                context -> new BrokenAllocators.ReleasesHalf(context.ranges("linear")),
                "candidate released 0x\\w+ of source linear with 2048 bytes on device 0; it was obtained with .*");
    }

    @Test
    void anOpenThatReturnsNullIsNamed() {
        assertBasicFailure(context -> null, "'candidate' can't be opened: its open\\(\\) returns null");
    }

    private static void assertBasicFailure(Function<AllocatorContext, DeviceAllocator> candidate, String message) {
        assertThat(causesInContext("BasicTests", candidate))
                .hasEntrySatisfying(
                        "aBlockIsFreedOnce", cause -> assertThat(cause).hasMessageMatching(message));
    }

    @Test
    void whatGoesBackUpstreamOfTheWrongDeviceIsFound() {
        assertThat(causesInContext(
                        "DeviceTests", context -> new BrokenAllocators.FreesOnDevice0(context.upstream("direct"))))
                .hasEntrySatisfying(
                        "memoryComesFromTheDeviceAskedFor",
                        cause -> assertThat(cause)
                                .hasMessageMatching(
                                        "(?s)candidate freed 0x\\w+ of upstream direct with \\d+ bytes on device 0;"
                                                + " it was obtained with \\d+ bytes on device 1.*"));
    }

    @Test
    void aFreeThatThrowsWhatTheDriverThrewIsFound() {
        assertThat(causesInContext(
                        "FaultTests",
                        context -> new BrokenAllocators.AwaitsInFree(context.upstream("direct"), context.streams())))
                .containsOnlyKeys("aFreeOnAnotherStreamDoesNotThrow", "aFreeOnAnEndedStreamDoesNotThrow")
                .allSatisfy((_, cause) -> assertThat(cause)
                        .hasMessageMatching(
                                "candidate threw in free\\(0x\\w+, \\d+ bytes\\) on stream 0x\\w+; free must not"
                                        + " throw: .*cuStreamWaitEvent.*"));
    }

    @Test
    void overlappingBlocksAreNamed() {
        assertThat(causesOf("AllocationTests", BrokenAllocators.Overlaps::new).values())
                .anySatisfy(
                        cause -> assertThat(cause)
                                .hasMessageMatching(
                                        "candidate returned 0x\\w+ for \\d+ bytes on device 0; 0x\\w+ of \\d+ bytes is live there"));
    }

    @Test
    void aFailureHasNoFollowUps() {
        assertThat(causesOf("BasicTests", BrokenAllocators.Misaligned::new).values())
                .isNotEmpty()
                .allSatisfy(
                        cause -> assertThat(cause.getSuppressed()).doesNotHaveAnyElementsOfTypes(AssertionError.class));
    }

    @Test
    void reuseOutOfStreamOrderIsSaidInTheFirstLine() {
        assertThat(causesOf("StreamTests", BrokenAllocators.IgnoresStreamOrder::new))
                .hasEntrySatisfying(
                        "manyStreamsComeAndGo",
                        cause -> assertThat(cause)
                                .hasMessageMatching(
                                        "candidate gave 0x\\w+ to stream 0x\\w+, though an ended stream that had the same"
                                                + " handle has not passed its free; streamClosing\\(\\) must forget(?s).*"));
    }

    @Test
    void onePartRunsAloneByItsTag() {
        Set<String> ran = new TreeSet<>();
        factory = overDriver(BrokenAllocators.Sound::new);
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(selectClass(Candidate.class))
                .filters(TagFilter.includeTags("conformance-basic"))
                .build();
        LauncherFactory.create().execute(request, new TestExecutionListener() {
            @Override
            public void executionStarted(TestIdentifier test) {
                test.getSource()
                        .filter(MethodSource.class::isInstance)
                        .ifPresent(source -> ran.add(((MethodSource) source).getClassName()));
            }
        });
        assertThat(ran).containsExactly(part("BasicTests").getName());
    }

    @Test
    void softAssertionsWorkWithTheKitsDependencies() {
        SoftAssertions soft = new SoftAssertions();
        soft.assertThat(List.of(1, 2)).hasSize(1);
        assertThat(soft.wasSuccess()).isFalse();
    }
}
