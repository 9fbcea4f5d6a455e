package io.cistern.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/// What the text of a failed call says.
final class CudaExceptionTests {
    private static String text(CudaResult result) {
        return String.valueOf(new CudaException(DriverCall.STREAM_SYNCHRONIZE, result.code(), "device=0").getMessage());
    }

    @Test
    void aFailureNamesCallArgumentsAndResult() {
        assertThat(text(CudaResult.INVALID_HANDLE))
                .isEqualTo("cuStreamSynchronize(device=0) failed: CUDA_ERROR_INVALID_HANDLE (400)");
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.MATCH_ANY, names = "(STREAM_CAPTURE|CAPTURED)_.*")
    void aFailureInACaptureSaysWhatToDo(CudaResult result) {
        assertThat(text(result)).contains("CUDA_ERROR_" + result + " (" + result.code() + "); ");
    }
}
