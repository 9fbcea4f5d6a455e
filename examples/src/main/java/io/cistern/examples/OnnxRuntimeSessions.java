package io.cistern.examples;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.onnxruntime.OnnxMemory;
import io.cistern.onnxruntime.SessionMemory;
import io.cistern.onnxruntime.SessionSettings;
import io.cistern.spi.TrimMode;

/// Runs sessions of ONNX Runtime that share Cistern's memory, each with its own limit and
/// figures. Arguments: models.
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-onnxruntime`,
/// `com.microsoft.onnxruntime:onnxruntime_gpu`.
public final class OnnxRuntimeSessions {
    private static final long LIMIT_BYTES = 4L << 30;

    private OnnxRuntimeSessions() {}

    public static void main(String[] models) throws OrtException {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        try (OnnxMemory memory = OnnxMemory.register(environment, DeviceMemory.system())) {
            for (String model : models) {
                use(environment, memory, model);
            }
            System.out.println("all sessions: " + memory.figures());
            System.out.println(
                    "given back: " + memory.trim(TrimMode.SYNCHRONIZE).returnedBytes() + " bytes");
        } catch (UnsupportedOperationException reason) {
            System.err.println("no memory for ONNX Runtime here: " + reason.getMessage());
            System.exit(1);
        }
    }

    private static void use(OrtEnvironment environment, OnnxMemory memory, String model) throws OrtException {
        SessionSettings settings = SessionSettings.named(model).limit(MemoryLimit.of(model, LIMIT_BYTES));
        try (SessionOptions options = new SessionOptions();
                SessionMemory sessionMemory = memory.configure(options, settings);
                OrtSession session = sessionMemory.call(() -> environment.createSession(model, options))) {
            System.out.println(model + " takes " + session.getInputNames() + ": " + sessionMemory.figures());
            // session.run(…) as usual, on any number of threads
        }
    }
}
