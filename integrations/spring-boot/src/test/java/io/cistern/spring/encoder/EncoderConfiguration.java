package io.cistern.spring.encoder;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.onnxruntime.OnnxMemory;
import io.cistern.onnxruntime.SessionMemory;
import io.cistern.onnxruntime.SessionSettings;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Optional;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/// Sessions whose memory Cistern provides on a GPU. docs/spring-boot.md links here.
@Configuration
class EncoderConfiguration {
    /// One for all contexts of the process, like the device memory and the `OrtEnvironment`; so no context closes it.
    @Bean(destroyMethod = "")
    @ConditionalOnProperty(name = "cistern.driver", havingValue = "cuda")
    OnnxMemory onnxMemory(DeviceMemory memory) {
        return memory.moduleSupport()
                .attachment(OnnxMemory.class, device -> OnnxMemory.register(OrtEnvironment.getEnvironment(), device));
    }

    /// A session and its memory, which closes after it.
    record Encoder(OrtSession session, Optional<SessionMemory> memory) implements AutoCloseable {
        @Override
        public void close() throws OrtException {
            session.close();
            memory.ifPresent(SessionMemory::close);
        }
    }

    /// Runs on the CPU if there is no `OnnxMemory`, which is registered before the session is created.
    @Bean
    Encoder encoder(ObjectProvider<OnnxMemory> onnxMemory, @Value("${encoder.model}") String model)
            throws OrtException {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            OnnxMemory onnx = onnxMemory.getIfAvailable();
            if (onnx == null) {
                return new Encoder(environment.createSession(model, options), Optional.empty());
            }
            SessionSettings settings = SessionSettings.named("encoder").limit(MemoryLimit.of("encoder", 2L << 30));
            SessionMemory own = onnx.configure(options, settings);
            return new Encoder(own.call(() -> environment.createSession(model, options)), Optional.of(own));
        }
    }

    @Bean
    MeterBinder encoderMeters(Encoder encoder) {
        return registry -> encoder.memory().ifPresent(memory -> addTo(registry, memory));
    }

    private static void addTo(MeterRegistry registry, SessionMemory memory) {
        Gauge.builder("encoder.memory.used", memory, at -> at.figures().usedBytes())
                .baseUnit("bytes")
                .register(registry);
    }
}
