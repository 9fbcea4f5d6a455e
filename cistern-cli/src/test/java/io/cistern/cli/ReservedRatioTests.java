package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceOutOfMemoryException;
import java.util.OptionalLong;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// How much `caching` reserves for what real programs ask of it, and that it comes to rest: pages move in the first
/// passes, and then the driver is not asked any more, or only about the order of streams.
final class ReservedRatioTests {
    /// After which each of them has come to rest.
    private static final int PASSES = 6;

    @ParameterizedTest(name = "{0} through {1}")
    @CsvSource({
        "resnet_train, caching, 1.02, 0",
        "vit_streams, caching, 1.10, 300",
        "vit_streams, caching:slack=0, 1.10, 300",
        "resnet_train, caching:fit=tight, 1.01, 0",
        "vit_streams, caching:fit=tight, 1.06, 300",
    })
    void reservedStaysNearWhatIsRequestedAndComesToRest(String name, String spec, double ratio, long calls)
            throws TraceException {
        Trace trace = BundledTraces.read(name);
        try (ReplayDevice gpu = new ReplayDevice.Simulated(OptionalLong.empty())) {
            ReplaySession.Outcome outcome = new ReplaySession(
                            trace,
                            spec,
                            Routing.Plan.ONE_ALLOCATOR,
                            gpu,
                            Plugins.catalog(),
                            PASSES,
                            () -> {},
                            ReservedRatioTests::unexpected,
                            null)
                    .observed(Work.NONE);
            assertThat((double) outcome.reservedPeakBytes().orElseThrow() / trace.requestedPeakBytes())
                    .isLessThanOrEqualTo(ratio);
            assertThat(outcome.passes().getLast().driverCalls()).isLessThanOrEqualTo(calls);
        }
    }

    private static void unexpected(DeviceOutOfMemoryException failure) {
        throw failure;
    }
}
