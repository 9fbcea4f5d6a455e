package io.cistern.spring.encoder;

import static org.assertj.core.api.Assertions.assertThat;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import io.cistern.onnxruntime.OnnxMemory;
import io.cistern.spring.encoder.EncoderConfiguration.Encoder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/// The configuration for ONNX Runtime on the page, without a GPU.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
final class EncoderConfigurationTests {
    /// A model of one `Identity`.
    private static final byte[] MODEL = Base64.getDecoder()
            .decode("CAg6NwoQCgF4EgF5IghJZGVudGl0eRIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCBAoAEA0=");

    @TempDir
    private Path folder;

    @EnableAutoConfiguration
    static class Application {}

    private ConfigurableApplicationContext start() throws Exception {
        Path model = Files.write(folder.resolve("encoder.onnx"), MODEL);
        return new SpringApplicationBuilder(Application.class, EncoderConfiguration.class)
                .web(WebApplicationType.NONE)
                .run("--spring.main.banner-mode=off", "--cistern.driver=simulated", "--encoder.model=" + model);
    }

    @Test
    void withoutAGpuTheSessionsOfSeveralContextsRunOnTheCpu() throws Exception {
        try (var first = start();
                var second = start()) {
            assertThat(first.getBeansOfType(OnnxMemory.class)).isEmpty();
            for (var context : new ConfigurableApplicationContext[] {first, second}) {
                try (OnnxTensor x = OnnxTensor.createTensor(OrtEnvironment.getEnvironment(), new float[] {7});
                        OrtSession.Result y =
                                context.getBean(Encoder.class).session().run(Map.of("x", x))) {
                    assertThat(y.get(0).getValue()).isEqualTo(new float[] {7});
                }
            }
        }
    }
}
