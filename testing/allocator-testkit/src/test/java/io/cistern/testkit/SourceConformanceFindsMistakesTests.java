package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/// Broken segment sources fail the suite for sources, in the test that is about their mistake.
class SourceConformanceFindsMistakesTests {
    private static Function<CudaDriver, SegmentSource> factory = BrokenSources.Sound::new;

    /// Not found by the build: its name does not end as those of tests do.
    static class Candidate extends SegmentSourceConformance {
        @Override
        protected String spec() {
            return "candidate";
        }

        @Override
        protected Catalog catalog() {
            return Catalog.of(List.of(), List.of(new CandidateProvider()));
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
            return factory.apply(context.extension(CudaDriver.class).orElseThrow());
        }
    }

    private static Set<String> failuresOf(Function<CudaDriver, SegmentSource> candidate) {
        factory = candidate;
        return FailedTests.of(Candidate.class).keySet();
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
