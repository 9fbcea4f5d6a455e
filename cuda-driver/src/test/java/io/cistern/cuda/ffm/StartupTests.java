package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.DriverFeature;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What the provider says of libraries that work and of those that don't.
final class StartupTests {
    private final NativeDriverProvider provider = new NativeDriverProvider();

    @TempDir
    private Path folder;

    @AfterEach
    void forgetTheLibrary() {
        System.clearProperty(DriverLibrary.PROPERTY);
    }

    private Optional<String> reasonWith(String... options) {
        System.setProperty(
                DriverLibrary.PROPERTY, new FakeLibrary(folder, options).path().toString());
        return provider.unavailableBecause();
    }

    @Test
    void isFoundAsAService() {
        assertThat(ServiceLoader.load(io.cistern.cuda.CudaDriverProvider.class))
                .hasAtLeastOneElementOfType(NativeDriverProvider.class);
    }

    @Test
    void aLibraryThatWorksIsAvailableAndSaysWhatItIs() {
        assertThat(reasonWith()).isEmpty();
        try (CudaDriver driver = provider.open()) {
            assertThat(driver.simulated()).isFalse();
            assertThat(driver.version()).isEqualTo(13000);
            assertThat(driver.description()).endsWith("libcuda-fake.so, driver API 13.0");
        }
    }

    @Test
    void noLibraryIsAReason() {
        System.setProperty(DriverLibrary.PROPERTY, "libcuda-that-nobody-has.so.1");
        assertThat(provider.unavailableBecause().orElseThrow())
                .contains("libcuda-that-nobody-has.so.1")
                .contains("install the NVIDIA driver")
                .contains("-Dcistern.cuda.library=PATH");
        assertThatThrownBy(provider::open)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("libcuda-that-nobody-has.so.1");
    }

    @Test
    void aFileThatIsNoLibraryIsAReason() throws Exception {
        System.setProperty(
                DriverLibrary.PROPERTY,
                Files.writeString(folder.resolve("text.so"), "no library").toString());
        assertThat(provider.unavailableBecause().orElseThrow())
                .contains("text.so")
                .contains("can't be loaded");
    }

    @Test
    void aMissingSymbolIsNamed() {
        assertThat(reasonWith("-DWITHOUT_STREAM_SYNCHRONIZE").orElseThrow())
                .contains("has no symbol cuStreamSynchronize")
                .contains("update the NVIDIA driver");
    }

    @Test
    void aNamedLibraryThatIsNoDriverIsAMistake() {
        System.setProperty(DriverLibrary.PROPERTY, "libc.so.6");
        assertThat(provider.misconfiguredBecause()).isEqualTo(provider.unavailableBecause());
        assertThat(provider.misconfiguredBecause().orElseThrow())
                .startsWith("property cistern.cuda.library: libc.so.6 has no symbol");
    }

    @Test
    void aMachineWithoutDevicesIsNoMistake() {
        assertThat(reasonWith("-DDEVICES=0")).isPresent();
        assertThat(provider.misconfiguredBecause()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "100, CUDA_ERROR_NO_DEVICE (100), CUDA_VISIBLE_DEVICES",
        "34, CUDA_ERROR_STUB_LIBRARY (34), LD_LIBRARY_PATH",
        "803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803), reboot",
        "804, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804), cuda-compat",
        "999, CUDA_ERROR_UNKNOWN (999), dmesg",
        "12345, CUresult (12345), cuInit"
    })
    void aFailureOfInitIsAReasonWithWhatToDo(int code, String name, String advice) {
        assertThat(reasonWith("-DINIT_RESULT=" + code).orElseThrow())
                .contains("cuInit")
                .contains(name)
                .contains(advice)
                .doesNotContain("\n");
    }

    @Test
    void noDeviceIsAReason() {
        assertThat(reasonWith("-DDEVICES=0").orElseThrow())
                .contains("sees no device")
                .contains("nvidia-smi");
    }

    @Test
    void everyFeatureIsThereOnADriverThatHasAll() {
        reasonWith();
        try (CudaDriver driver = provider.open()) {
            DriverCapabilities capabilities = driver.capabilities();
            assertThat(capabilities.devices()).hasSize(2);
            DriverCapabilities.DeviceCapabilities device =
                    capabilities.devices().get(1);
            assertThat(device.name()).isEqualTo("Fake 1");
            assertThat(device.uuid()).isEqualTo("01112131-4151-6171-8191-a1b1c1d1e1f1");
            assertThat(device.totalBytes()).isEqualTo(0x2000000001L);
            assertThat(device.computeCapability()).isEqualTo(90);
            assertThat(device.granularity()).isEqualTo(2L << 20);
            for (DriverFeature feature : DriverFeature.values()) {
                assertThat(device.supports(feature).supported())
                        .as(feature.name())
                        .isTrue();
            }
            assertThat(driver.capabilities()).isSameAs(capabilities);
        }
    }

    @Test
    void anOldDriverLacksPoolsAndSaysSoAndTheRestWorks() {
        reasonWith("-DWITHOUT_POOLS");
        try (CudaDriver driver = provider.open()) {
            DriverCapabilities capabilities = driver.capabilities();
            assertThat(capabilities.environment()).anyMatch(text -> text.startsWith("old driver"));
            assertThat(capabilities
                            .devices()
                            .getFirst()
                            .supports(DriverFeature.MEMORY_POOLS)
                            .reason())
                    .contains("has no cuMemAllocAsync")
                    .contains("11.2");
            assertThat(capabilities
                            .devices()
                            .getFirst()
                            .supports(DriverFeature.VIRTUAL_MEMORY)
                            .supported())
                    .isTrue();
            assertThat(capabilities.devices().getFirst().uuid()).isEqualTo("unknown");
            assertThatThrownBy(() -> driver.pools().allocate(0, 1, 0))
                    .asInstanceOf(InstanceOfAssertFactories.type(CudaException.class))
                    .returns(CudaResult.NOT_SUPPORTED, CudaException::result);
            assertThat(driver.memory().allocate(0, 1)).isEqualTo(0xc0);
            assertThat(driver.copies().takesBatches()).isFalse();
            assertThatThrownBy(() -> driver.copies().batch(0, List.of(new Copies.Piece(1, 2, 3)), 16))
                    .asInstanceOf(InstanceOfAssertFactories.type(CudaException.class))
                    .returns(CudaResult.NOT_SUPPORTED, CudaException::result);
        }
    }

    @Test
    void aDeviceWithoutAttributesHasAReasonForEachNo() {
        FakeLibrary library = new FakeLibrary(folder);
        library.attributes(0);
        try (CudaDriver driver = library.open()) {
            DriverCapabilities.DeviceCapabilities device =
                    driver.capabilities().devices().getFirst();
            assertThat(device.features()).hasSize(DriverFeature.values().length);
            device.features().forEach((feature, support) -> {
                assertThat(support.supported())
                        .as(feature.name())
                        .isEqualTo(feature == DriverFeature.STREAM_ID || feature == DriverFeature.BUDGET_NOTIFICATION);
                assertThat(support.reason().isEmpty()).isEqualTo(support.supported());
            });
            assertThat(device.granularity()).isZero();
        }
    }

    @ParameterizedTest
    @CsvSource({"cuMemPoolCreate, MEMORY_POOLS, vGPU", "cuMemCreate, FABRIC, IMEX"})
    void aRefusedTrialIsANoDespiteTheAttribute(String function, DriverFeature feature, String advice) {
        FakeLibrary library = new FakeLibrary(folder);
        library.fail(function, 800);
        try (CudaDriver driver = library.open()) {
            assertThat(driver.capabilities()
                            .devices()
                            .getFirst()
                            .supports(feature)
                            .reason())
                    .contains(function + "(")
                    .contains("CUDA_ERROR_NOT_PERMITTED (800)")
                    .contains(advice);
        }
    }
}
