package io.cistern.onnxruntime;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import java.util.Map;

/// Checks and sets the options of the CUDA provider that concern memory.
final class ProviderOptions {
    private static final String NOT_OURS = "it is for the arena of ONNX Runtime, which is not used: ";
    private static final String LOST = "ONNX Runtime accepts it from Java but never calls the function: ";

    /// Options that would have no effect or do harm, each with an alternative.
    private static final Map<String, String> REFUSED = Map.of(
            "gpu_mem_limit", NOT_OURS + "set SessionSettings.limit",
            "arena_extend_strategy", NOT_OURS + "choose one of Cistern's allocators, such as caching:fit=tight",
            "gpu_external_alloc", LOST + "OnnxMemory replaces it",
            "gpu_external_free", LOST + "OnnxMemory replaces it",
            "gpu_external_empty_cache", LOST + "OnnxMemory.trim replaces it",
            "has_user_compute_stream", "OnnxMemory chooses the stream: see SessionStreams",
            "user_compute_stream", "OnnxMemory chooses the stream: see SessionStreams",
            "enable_cuda_graph", "a graph keeps addresses of blocks that ONNX Runtime frees: leave this option off");

    private static final String OFF = "0";

    private ProviderOptions() {}

    /// @param options `key=value` pairs, separated by `;`
    /// @throws IllegalArgumentException if an option would have no effect, or do harm
    static void check(String options, int device) {
        for (String pair : options.split(";", -1)) {
            int end = pair.indexOf('=');
            if (end > 0) {
                check(pair.substring(0, end), pair.substring(end + 1), device);
            }
        }
    }

    private static void check(String key, String value, int device) {
        String refusal = REFUSED.get(key);
        if (refusal != null && !value.equals(OFF)) {
            throw new IllegalArgumentException("option " + key + "=" + value + " of the CUDA provider: " + refusal);
        }
        if (key.equals("device_id") && !value.equals(Integer.toString(device))) {
            throw new IllegalArgumentException("option device_id=" + value + " of the CUDA provider: the memory is of"
                    + " device " + device + "; register one OnnxMemory for each device");
        }
    }

    /// Returns a copy, so that one session's stream does not get into the options of the next session.
    static OrtCUDAProviderOptions copy(OrtCUDAProviderOptions options, int device) throws OrtException {
        OrtCUDAProviderOptions copy = new OrtCUDAProviderOptions(device);
        for (String pair : options.getOptionsString().split(";", -1)) {
            int end = pair.indexOf('=');
            if (end > 0) {
                copy.add(pair.substring(0, end), pair.substring(end + 1));
            }
        }
        return copy;
    }

    /// Makes the session work on a stream.
    static void setStream(OrtCUDAProviderOptions options, long handle) throws OrtException {
        options.add("has_user_compute_stream", "1");
        options.add("user_compute_stream", Long.toUnsignedString(handle));
    }
}
