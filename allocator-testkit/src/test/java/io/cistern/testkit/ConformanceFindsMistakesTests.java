package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectNestedClass;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/// A suite that passes everything proves nothing: broken allocators must fail it, in the test that is about their
/// mistake.
class ConformanceFindsMistakesTests {
    private static Function<CudaDriver, DeviceAllocator> maker = BrokenAllocators.Sound::new;

    /// Not found by the build: its name does not end as those of tests do.
    static class Candidate extends AllocatorConformance {
        @Override
        protected Allocator open(DeviceMemory memory) {
            return memory.open("candidate", maker.apply(memory.driver()));
        }
    }

    private static List<String> failuresOf(String part, Function<CudaDriver, DeviceAllocator> candidate) {
        maker = candidate;
        List<String> failed = new ArrayList<>();
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(selectNestedClass(List.of(Candidate.class), part(part)))
                .build();
        LauncherFactory.create().execute(request, new TestExecutionListener() {
            @Override
            public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                if (result.getStatus() == TestExecutionResult.Status.FAILED) {
                    failed.add(test.getDisplayName().replace("()", ""));
                }
            }
        });
        return failed;
    }

    private static Class<?> part(String name) {
        return Stream.of(AllocatorConformance.class.getDeclaredClasses())
                .filter(part -> part.getSimpleName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aSoundAllocatorPasses() {
        for (String part : List.of("BasicTests", "CapacityTests", "OrderTests", "StatisticsTests", "DeviceTests")) {
            assertThat(failuresOf(part, BrokenAllocators.Sound::new)).as(part).isEmpty();
        }
    }

    @Test
    void reuseOutOfStreamOrderIsFound() {
        assertThat(failuresOf("OrderTests", BrokenAllocators.IgnoresStreamOrder::new))
                .contains(
                        "memoryFreedOnAStreamIsNotOverwrittenByAnotherBeforeTheFree",
                        "memoryFreedOnAnotherStreamIsNotOverwrittenByItsFirstBeforeTheFree");
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
}
