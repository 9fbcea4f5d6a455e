package io.cistern.benchmarks.onnx;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import io.cistern.DeviceMemory;
import io.cistern.onnxruntime.OnnxMemory;
import io.cistern.onnxruntime.SessionMemory;
import io.cistern.onnxruntime.SessionSettings;
import io.cistern.onnxruntime.SessionStreams;
import java.util.Optional;

/// Chooses the device memory of a run's sessions, by its name on the command line.
///
/// | name | memory |
/// |---|---|
/// | `arena` | an arena for each session, as ONNX Runtime has by default: it grows by powers of two |
/// | `arena_same` | an arena that grows by what is requested |
/// | `arena_same_no_pattern` | the same without memory patterns |
/// | `arena_same_one_stream` | the same, each session on one stream that the program opens |
/// | `cuda_pool` | ONNX Runtime's pool of `cudaMallocAsync`, shared by all sessions |
/// | `cistern_session` | Cistern, each session on one stream |
/// | `cistern_request` | Cistern, on ONNX Runtime's own streams |
final class MemorySource {
    private final String name;
    private final DeviceMemory memory;
    private final Optional<OnnxMemory> registered;

    MemorySource(OrtEnvironment environment, String name, DeviceMemory memory) {
        this.name = name;
        this.memory = memory;
        registered =
                name.startsWith("cistern") ? Optional.of(OnnxMemory.register(environment, memory)) : Optional.empty();
        if (name.equals("cuda_pool")) {
            RegisteredPool.register();
        }
    }

    /// Returns Cistern's registration with ONNX Runtime, if it has one.
    Optional<OnnxMemory> registered() {
        return registered;
    }

    /// Configures the options of a session and returns its memory, if Cistern provides it.
    Optional<SessionMemory> configure(String session, SessionOptions options) throws OrtException {
        try (OrtCUDAProviderOptions cuda = new OrtCUDAProviderOptions(0)) {
            cuda.add("cudnn_conv_algo_search", "HEURISTIC");
            if (registered.isPresent()) {
                SessionStreams streams = name.equals("cistern_session")
                        ? SessionStreams.ONE_OF_SESSION
                        : SessionStreams.ONE_FOR_EACH_REQUEST;
                SessionSettings settings =
                        SessionSettings.named(session).streams(streams).provider(cuda);
                return Optional.of(registered.get().configure(options, settings));
            }
            ownOptions(cuda, options);
            options.addCUDA(cuda);
            return Optional.empty();
        }
    }

    private void ownOptions(OrtCUDAProviderOptions cuda, SessionOptions options) throws OrtException {
        if (name.equals("cuda_pool")) {
            options.addConfigEntry("session.use_env_allocators", "1");
        } else {
            cuda.add("arena_extend_strategy", name.equals("arena") ? "kNextPowerOfTwo" : "kSameAsRequested");
        }
        options.setMemoryPatternOptimization(!name.endsWith("no_pattern"));
        if (name.endsWith("one_stream")) {
            cuda.add("has_user_compute_stream", "1");
            cuda.add(
                    "user_compute_stream",
                    Long.toUnsignedString(io.cistern.CudaStream.open(memory, 0).handle()));
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
