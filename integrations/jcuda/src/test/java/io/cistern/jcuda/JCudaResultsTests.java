package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import jcuda.CudaException;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.Test;

/// Failures are thrown or returned by JCuda's own flags.
class JCudaResultsTests {
    private static final boolean LOADED = FakeLibcuda.load().isPresent();

    @Test
    void afterSetExceptionsEnabledFailuresAreThrownWithTheirCause() {
        assumeTrue(LOADED, "no gcc on the PATH");
        IllegalStateException cause = new IllegalStateException();
        JCudaDriver.setExceptionsEnabled(true);
        try {
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> JCudaResults.ofDriver(CUresult.CUDA_ERROR_OUT_OF_MEMORY, cause))
                    .withMessage("CUDA_ERROR_OUT_OF_MEMORY")
                    .withCause(cause);
            assertThat(JCudaResults.ofDriver(CUresult.CUDA_SUCCESS, null)).isZero();
            assertThat(JCudaResults.ofRuntime(CUresult.CUDA_ERROR_OUT_OF_MEMORY, null))
                    .as("has a flag of its own")
                    .isEqualTo(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
        } finally {
            JCudaDriver.setExceptionsEnabled(false);
        }
        assertThat(JCudaResults.ofDriver(CUresult.CUDA_ERROR_OUT_OF_MEMORY, cause))
                .isEqualTo(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    }

    @Test
    void withoutJCudasNativePartsFailuresAreResults() throws Exception {
        URL[] withoutNativeParts = {
            JCudaResults.class.getProtectionDomain().getCodeSource().getLocation(),
            JCudaDriver.class.getProtectionDomain().getCodeSource().getLocation()
        };
        try (URLClassLoader loader = new URLClassLoader(withoutNativeParts, ClassLoader.getPlatformClassLoader())) {
            Method ofDriver = loader.loadClass(JCudaResults.class.getName())
                    .getDeclaredMethod("ofDriver", int.class, Throwable.class);
            ofDriver.setAccessible(true);
            for (int attempt = 0; attempt < 2; attempt++) {
                assertThat(ofDriver.invoke(null, 2, null)).isEqualTo(2);
            }
        }
    }
}
