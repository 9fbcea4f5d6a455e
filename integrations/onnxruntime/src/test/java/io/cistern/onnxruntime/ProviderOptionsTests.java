package io.cistern.onnxruntime;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ProviderOptionsTests {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "gpu_mem_limit=1073741824",
                "arena_extend_strategy=kSameAsRequested",
                "gpu_external_alloc=140000000",
                "user_compute_stream=140000000",
                "has_user_compute_stream=1",
                "enable_cuda_graph=1"
            })
    void anOptionThatWouldDoNothingOrHarmIsRefusedByName(String option) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ProviderOptions.check(";device_id=0;" + option + ";", 0))
                .withMessageContaining(option);
    }

    @Test
    void theDeviceMustBeThatOfTheMemory() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ProviderOptions.check(";device_id=1;", 0))
                .withMessageContaining("device 0");
    }

    @Test
    void otherOptionsPass() {
        assertThatCode(() ->
                        ProviderOptions.check(";device_id=1;cudnn_conv_algo_search=HEURISTIC;enable_cuda_graph=0;", 1))
                .doesNotThrowAnyException();
        assertThatCode(() -> ProviderOptions.check(";;", 0)).doesNotThrowAnyException();
    }
}
