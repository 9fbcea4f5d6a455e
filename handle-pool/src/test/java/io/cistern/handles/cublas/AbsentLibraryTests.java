package io.cistern.handles.cublas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.DeviceMemory;
import io.cistern.handles.cudnn.Cudnn;
import io.cistern.handles.fake.FakeLibraries;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.Availability;
import java.nio.file.Path;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Where a library is not, and how it is named.
class AbsentLibraryTests {
    @TempDir
    private Path folder;

    @AfterEach
    void forget() {
        System.clearProperty("cistern.cublas.library");
        System.clearProperty("cistern.cublaslt.library");
        System.clearProperty("cistern.cudnn.library");
    }

    private static void assertAbsent(String setting, Supplier<Availability> availability) {
        System.setProperty(setting, "libof-nobody.so.1");
        assertThat(availability.get().available()).isFalse();
        assertThat(availability.get().reason()).contains("can't be loaded", "libof-nobody.so.1", "install", setting);
    }

    @Test
    void aLibraryThatIsNotThereIsAReasonWithWhatToDo() {
        assertAbsent("cistern.cublas.library", Cublas::availability);
        assertAbsent("cistern.cublaslt.library", CublasLt::availability);
        assertAbsent("cistern.cudnn.library", Cudnn::availability);
    }

    @Test
    void aLibraryIsFoundByItsFileAndByItsFolder() {
        FakeLibraries fake = new FakeLibraries(folder, "libcublas.so.12");
        System.setProperty("cistern.cublas.library", folder.toString());
        System.setProperty("cistern.cudnn.library", fake.path());
        assertThat(Cublas.availability()).isEqualTo(Availability.yes());
        assertThat(Cudnn.availability()).isEqualTo(Availability.yes());
    }

    @Test
    void aLibraryOfAnotherKindIsNamed() {
        System.setProperty("cistern.cublas.library", "libm.so.6");
        assertThat(Cublas.availability().reason())
                .contains("libm.so.6 has no symbol cublasGetProperty", "it is no cuBLAS");
    }

    @Test
    void theSimulatedGpuHasNone() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> Cublas.open(memory))
                    .withMessageContaining("cuBLAS needs a real GPU");
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> CublasLt.open(memory))
                    .withMessageContaining("cuBLASLt needs a real GPU");
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> Cudnn.open(memory))
                    .withMessageContaining("cuDNN needs a real GPU");
        }
    }
}
