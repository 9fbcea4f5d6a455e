package io.cistern.benchmarks.onnx;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.onnxruntime.OnnxMemory;
import io.cistern.onnxruntime.SessionMemory;
import io.cistern.onnxruntime.SessionSettings;
import io.cistern.onnxruntime.SessionStreams;
import io.cistern.spi.TrimMode;
import java.nio.FloatBuffer;
import java.util.Map;

/// Checks limits, figures, trimming, closing in each order and bad input with a real ONNX Runtime on a real
/// GPU. Prints a line for each check.
public final class OnnxChecks {
    private static final int MODEL = 0;
    private static final int KIND = 3;
    private static final long MIB = 1 << 20;

    private final OrtEnvironment environment = OrtEnvironment.getEnvironment();
    private final DeviceMemory memory = DeviceMemory.system();
    private final byte[] model = Models.bytes(MODEL);
    private int failed;

    private interface Check {
        String run() throws Exception;
    }

    public static void main(String[] arguments) {
        OnnxChecks checks = new OnnxChecks();
        checks.all();
        System.out.println(checks.failed + " failed");
        Runtime.getRuntime().halt(checks.failed == 0 ? 0 : 1);
    }

    private void all() {
        check("figures", this::figures);
        check("trim while a session lives", this::trim);
        check("a limit", this::limit);
        check("a pool of the thread", this::pool);
        check("the memory closed before its session", () -> closedFirst(SessionStreams.ONE_OF_SESSION));
        check("the same on streams of ONNX Runtime", () -> closedFirst(SessionStreams.ONE_FOR_EACH_REQUEST));
        check("the session closed in a thread that ends", this::endedThread);
        check("a second registration", this::second);
        check("options that do nothing", this::options);
    }

    private void check(String name, Check check) {
        try {
            System.out.println("ok      " + name + ": " + check.run());
        } catch (Throwable failure) {
            failed++;
            System.out.println("FAILED  " + name + ": " + failure);
            failure.printStackTrace();
        }
    }

    private static void require(boolean holds, Object seen) {
        if (!holds) {
            throw new IllegalStateException(String.valueOf(seen));
        }
    }

    private OrtSession open(OrtSession.SessionOptions options, SessionMemory own) throws OrtException {
        return own.call(() -> environment.createSession(model, options));
    }

    private float compute(OrtSession session) throws OrtException {
        try (OnnxTensor in = Models.input(environment, MODEL, KIND);
                OrtSession.Result out = session.run(Map.of("x", in))) {
            FloatBuffer values = ((OnnxTensor) out.get(0)).getFloatBuffer();
            return values.get(values.remaining() - 1);
        }
    }

    private String figures() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options, SessionSettings.named("encoder"));
                OrtSession session = open(options, own)) {
            float value = compute(session);
            require(own.figures().usedBytes() >= model.length - MIB, own.figures());
            require(own.figures().peakBytes() > own.figures().usedBytes(), own.figures());
            return own.figures() + ", last value " + value;
        }
    }

    private String trim() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options);
                OrtSession session = open(options, own)) {
            float before = compute(session);
            long returned = onnx.trim(TrimMode.SYNCHRONIZE).returnedBytes();
            float after = compute(session);
            require(returned > MIB && before == after, returned + " " + before + " " + after);
            return returned / MIB + " MiB went back; the next request gives the same";
        }
    }

    private String limit() throws OrtException {
        MemoryLimit limit = MemoryLimit.of("encoder", model.length + 8 * MIB);
        SessionSettings settings = SessionSettings.named("encoder").limit(limit);
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options, settings);
                OrtSession session = open(options, own)) {
            String refusal = refusal(session);
            String reason = onnx.lastFailure().map(Throwable::getMessage).orElse("");
            require(reason.contains("encoder"), reason);
            limit.setByteSize(4L << 30);
            compute(session);
            return "ONNX Runtime says \"" + refusal + "\", Cistern \""
                    + reason.lines().findFirst().orElse("") + "\"; with a higher limit the session goes on";
        }
    }

    private String refusal(OrtSession session) {
        try {
            compute(session);
            throw new IllegalStateException("no refusal");
        } catch (OrtException expected) {
            return String.valueOf(expected.getMessage()).lines().findFirst().orElse("");
        }
    }

    private String pool() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                MemoryPool pool = memory.pools().open("caching");
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options);
                OrtSession session = open(options, own)) {
            compute(session);
            require(pool.reservedBytes(0).orElse(0) == 0, pool.reservedBytes(0));
            try (Scope _ = pool.enter()) {
                compute(session);
            }
            require(pool.reservedBytes(0).orElse(0) > 0 && pool.liveBlocks() == 0, pool.memorySummary(0));
            return pool.reservedBytes(0).getAsLong() / MIB + " MiB of the pool served a request";
        }
    }

    private String closedFirst(SessionStreams streams) throws OrtException {
        OnnxMemory onnx = OnnxMemory.register(environment, memory);
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            SessionMemory own =
                    onnx.configure(options, SessionSettings.named("s").streams(streams));
            OrtSession session = open(options, own);
            compute(session);
            onnx.close();
            String refusal = refusal(session);
            session.close();
            require(onnx.figures().liveBlocks() == 0, onnx.figures());
            return "a request: \"" + refusal + "\", its reason: "
                    + onnx.lastFailure().map(Throwable::getMessage).orElse("") + "; no block is left";
        }
    }

    private String endedThread() throws Exception {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(
                        options, SessionSettings.named("s").streams(SessionStreams.ONE_FOR_EACH_REQUEST))) {
            Throwable[] failure = new Throwable[1];
            for (int i = 0; i < 20; i++) {
                Thread.ofPlatform()
                        .start(() -> failure[0] = inThread(options, own, failure[0]))
                        .join();
            }
            require(failure[0] == null && onnx.figures().liveBlocks() == 0, failure[0] + " " + onnx.figures());
            return "20 sessions made, used and closed in 20 threads; " + onnx.figures();
        }
    }

    private Throwable inThread(OrtSession.SessionOptions options, SessionMemory own, Throwable before) {
        try (OrtSession session = open(options, own)) {
            compute(session);
            return before;
        } catch (OrtException failure) {
            return failure;
        }
    }

    private String second() {
        try (OnnxMemory _ = OnnxMemory.register(environment, memory)) {
            OnnxMemory.register(environment, memory).close();
            throw new IllegalArgumentException("no refusal");
        } catch (IllegalStateException refusal) {
            return String.valueOf(refusal.getMessage());
        }
    }

    private String options() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                OrtCUDAProviderOptions provider = new OrtCUDAProviderOptions(0)) {
            provider.add("gpu_external_alloc", "140000000");
            onnx.configure(options, SessionSettings.named("s").provider(provider));
            throw new IllegalStateException("no refusal");
        } catch (IllegalArgumentException refusal) {
            return String.valueOf(refusal.getMessage());
        }
    }
}
