package io.cistern.benchmarks.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
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
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// ONNX Runtime itself, with `onnxruntime_gpu` on the class path in place of `onnxruntime`: limits, figures, trimming,
/// closing in each order, and bad input.
@Tag("gpu")
final class RealOnnxRuntimeGpuTests {
    private static final int MODEL = 0;
    private static final int KIND = 3;
    private static final long MIB = 1 << 20;

    private final OrtEnvironment environment = OrtEnvironment.getEnvironment();
    private final DeviceMemory memory = DeviceMemory.system();
    private final byte[] model = Models.bytes(MODEL);

    @BeforeEach
    void onnxRuntimeHasCuda() {
        assumeTrue(OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA));
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

    @Test
    void figuresCountTheModelAndTheRequest() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options, SessionSettings.named("encoder"));
                OrtSession session = open(options, own)) {
            compute(session);

            assertThat(own.figures().usedBytes()).isGreaterThanOrEqualTo(model.length - MIB);
            assertThat(own.figures().peakBytes()).isGreaterThan(own.figures().usedBytes());
        }
    }

    @Test
    void trimGivesMemoryBackWhileASessionLives() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options);
                OrtSession session = open(options, own)) {
            float before = compute(session);

            assertThat(onnx.trim(TrimMode.SYNCHRONIZE).returnedBytes()).isGreaterThan(MIB);
            assertThat(compute(session)).isEqualTo(before);
        }
    }

    @Test
    void aLimitRefusesWithItsNameUntilItIsRaised() throws OrtException {
        MemoryLimit limit = MemoryLimit.of("encoder", model.length + 8 * MIB);
        SessionSettings settings = SessionSettings.named("encoder").limit(limit);
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options, settings);
                OrtSession session = open(options, own)) {
            assertThatExceptionOfType(OrtException.class).isThrownBy(() -> compute(session));
            assertThat(onnx.lastFailure().orElseThrow()).hasMessageContaining("encoder");

            limit.setByteSize(4L << 30);
            assertThat(compute(session)).isFinite();
        }
    }

    @Test
    void aPoolOfTheThreadServesARequest() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                MemoryPool pool = memory.pools().open("caching");
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(options);
                OrtSession session = open(options, own)) {
            compute(session);
            assertThat(pool.reservedBytes(0).orElse(0)).isZero();

            try (Scope _ = pool.enter()) {
                compute(session);
            }
            assertThat(pool.reservedBytes(0).orElse(0)).isPositive();
            assertThat(pool.liveBlockCount()).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource
    void aSessionThatOutlivesTheMemoryOnlyFrees(SessionStreams streams) throws OrtException {
        OnnxMemory onnx = OnnxMemory.register(environment, memory);
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            SessionMemory own =
                    onnx.configure(options, SessionSettings.named("s").streams(streams));
            OrtSession session = open(options, own);
            compute(session);
            onnx.close();

            assertThatExceptionOfType(OrtException.class).isThrownBy(() -> compute(session));
            session.close();
            assertThat(onnx.figures().liveBlocks()).isZero();
        }
    }

    @Test
    void sessionsOfThreadsThatEndLeaveNothing() throws Exception {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                SessionMemory own = onnx.configure(
                        options, SessionSettings.named("s").streams(SessionStreams.ONE_FOR_EACH_REQUEST))) {
            for (int i = 0; i < 20; i++) {
                FutureTask<Float> ofThread = new FutureTask<>(() -> {
                    try (OrtSession session = open(options, own)) {
                        return compute(session);
                    }
                });
                Thread.ofPlatform().start(ofThread).join();
                assertThat(ofThread.get()).isFinite();
            }
            assertThat(onnx.figures().liveBlocks()).isZero();
        }
    }

    @Test
    void aSecondRegistrationIsRefused() {
        try (OnnxMemory _ = OnnxMemory.register(environment, memory)) {
            assertThatIllegalStateException().isThrownBy(() -> OnnxMemory.register(environment, memory));
        }
    }

    @Test
    void optionsThatWouldDoNothingAreRefused() throws OrtException {
        try (OnnxMemory onnx = OnnxMemory.register(environment, memory);
                OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                OrtCUDAProviderOptions provider = new OrtCUDAProviderOptions(0)) {
            provider.add("gpu_external_alloc", "140000000");

            assertThatIllegalArgumentException()
                    .isThrownBy(() ->
                            onnx.configure(options, SessionSettings.named("s").provider(provider)));
        }
    }
}
