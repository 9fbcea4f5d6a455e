package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/// Broken segment sources fail the suite for sources, in the test that is about their mistake.
class SourceConformanceFindsMistakesTests {
    private static Function<AllocatorContext, SegmentSource> factory = context -> context.segments("linear");

    /// Not found by the build: its name does not end as those of tests do.
    static class Candidate extends SegmentSourceConformance {
        @Override
        protected String spec() {
            return "candidate";
        }

        @Override
        protected Catalog catalog() {
            return Catalog.of(
                    List.of(),
                    List.of(new CandidateProvider(), DiscoveredCatalog.find().source("linear")));
        }
    }

    private static final class CandidateProvider implements SegmentSourceProvider {
        @Override
        public int spiVersion() {
            return AllocatorProvider.SPI_VERSION;
        }

        @Override
        public String name() {
            return "candidate";
        }

        @Override
        public SegmentSource open(AllocatorContext context) {
            return factory.apply(context);
        }
    }

    private static Set<String> failuresOf(Function<CudaDriver, SegmentSource> candidate) {
        return causesInContext(context ->
                        candidate.apply(context.extension(CudaDriver.class).orElseThrow()))
                .keySet();
    }

    private static Map<String, Throwable> causesInContext(Function<AllocatorContext, SegmentSource> candidate) {
        factory = candidate;
        return FailedTests.of(Candidate.class);
    }

    @Test
    void aSourceOverAnotherPasses() {
        assertThat(causesInContext(context -> new BrokenSources.Over(context.ranges("linear"))))
                .isEmpty();
    }

    @Test
    void rangesReleasedWithAWrongSizeAreFound() {
        assertFailure(
                context -> new BrokenSources.ReleasesHalf(context.ranges("linear")),
                "whatWasReleasedServesAgain",
                "(?s)candidate released 0x\\w+ of source linear with \\d+ bytes on device 0; it was obtained with .*");
    }

    @Test
    void rangesReleasedOnAWrongDeviceAreFound() {
        assertFailure(
                context -> new BrokenSources.ReleasesOnDevice0(context.ranges("linear")),
                "memoryIsOfTheDeviceAskedFor",
                "(?s)candidate released 0x\\w+ of source linear with \\d+ bytes on device 0; it was obtained with \\d+ bytes on"
                        + " device 1.*");
    }

    @Test
    void anAlignmentThatIsNotPassedOnIsFound() {
        assertFailure(
                context -> new BrokenSources.AlignsTo256(context.ranges("linear")),
                "anAlignmentIsKeptOrRefused",
                "segment source candidate returned 0x\\w+ for \\d+ bytes on device 0, which is not a multiple of \\d+");
    }

    @Test
    void aSegmentThatClaimsMoreThanItHasIsFound() {
        assertFailure(
                context -> new BrokenSources.ClaimsTwice(context.ranges("linear")),
                "whatWasReleasedServesAgain",
                "(?s).*which candidate returned with \\d+ bytes; the driver's range there has \\d+\\].*");
    }

    private static void assertFailure(
            Function<AllocatorContext, SegmentSource> candidate, String test, String message) {
        assertThat(causesInContext(candidate))
                .hasEntrySatisfying(
                        test,
                        cause -> assertThat(cause).hasMessageMatching(message).hasNoSuppressedExceptions());
    }

    @Test
    void soundSourcesPass() {
        assertThat(failuresOf(BrokenSources.Sound::new)).isEmpty();
        assertThat(failuresOf(BrokenSources.SoundPages::new)).isEmpty();
    }

    @Test
    void anIgnoredAlignmentIsFound() {
        assertThat(failuresOf(BrokenSources.Misaligned::new)).contains("anAlignmentIsKeptOrRefused");
    }

    @Test
    void segmentsThatAreTooShortAreFound() {
        assertThat(failuresOf(BrokenSources.Short::new)).contains("everySizeIsMemoryOfItsOwn");
    }

    @Test
    void refusedMemoryThatIsForgottenIsFound() {
        assertThat(failuresOf(BrokenSources.ForgetsTheRefused::new))
                .containsExactly("memoryThatTheDriverRefusesToTakeBackIsTakenBackLater");
    }

    @Test
    void releasesThatGiveNothingBackAreFound() {
        assertThat(failuresOf(BrokenSources.KnowsObjects::new)).contains("whatWasReleasedServesAgain");
        assertThat(failuresOf(BrokenSources.KeepsHandles::new)).contains("whatWasReleasedServesAgain");
    }

    @Test
    void memoryOfTheWrongDeviceIsFound() {
        assertThat(failuresOf(BrokenSources.KnowsOneDevice::new)).contains("memoryIsOfTheDeviceAskedFor");
        assertThat(failuresOf(BrokenSources.PagesOfOneDevice::new)).contains("memoryIsOfTheDeviceAskedFor");
    }

    @Test
    void anUntypedOutOfMemoryIsFound() {
        assertThat(failuresOf(BrokenSources.HidesOutOfMemory::new))
                .contains(
                        "moreThanThereIsIsOutOfMemoryAndTheNextRequestIsServed",
                        "aFullDeviceRefusesAndIsFilledAgainAsFullAsBefore");
    }

    @Test
    void traitsThatChangeAreFound() {
        assertThat(failuresOf(BrokenSources.ChangesItsTraits::new)).contains("traitsStayAndSayHowMemoryIsMapped");
    }
}
