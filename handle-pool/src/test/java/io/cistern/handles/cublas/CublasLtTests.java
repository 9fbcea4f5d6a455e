package io.cistern.handles.cublas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.fake.FakeLibraries;
import io.cistern.handles.fake.OverFake;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What arrives at cuBLASLt, and how often an algorithm is looked for.
class CublasLtTests {
    private static final Gemm GEMM = Gemm.of(3, 5, 7);

    @TempDir
    private static Path folder;

    private static FakeLibraries fake;

    private OverFake over;
    private CublasLt lt;
    private long stream;
    private DeviceBuffer a;
    private DeviceBuffer b;
    private DeviceBuffer c;
    private DeviceBuffer bias;

    @BeforeAll
    static void compile() {
        fake = new FakeLibraries(folder, "libcublasLt.so.12");
    }

    @BeforeEach
    void open() {
        over = new OverFake(fake);
        lt = open(HandlePoolOptions.DEFAULT);
        stream = over.gpu.streams().create(0);
        a = over.buffer(1024, 0, stream);
        b = over.buffer(1024, 0, stream);
        c = over.buffer(1024, 0, stream);
        bias = over.buffer(1024, 0, stream);
    }

    private CublasLt open(HandlePoolOptions options) {
        return CublasLt.open(over.memory, CublasLtFunctions.load(fake.path()), options);
    }

    @AfterEach
    void close() {
        over.close();
    }

    private static String hex(DeviceBuffer buffer) {
        return Long.toHexString(buffer.address());
    }

    @Test
    void aProductArrives() {
        lt.matmul(GEMM.withTransposedA().withAlpha(2).withBeta(0.5).withLeadingDimensions(8, 0, 4), a, b, c, stream);
        assertThat(fake.last())
                .isEqualTo(("68 1 0 e=1 bias=0 2 a=%s 0 7x3/8 b=%s 7x5/7 0.5 c=%s 3x5/4 d=%s"
                                + " algo=100010001000100 33554432")
                        .formatted(hex(a), hex(b), hex(c), hex(c)));
    }

    @Test
    void everyEpilogueArrives() {
        for (Epilogue epilogue : Epilogue.values()) {
            if (epilogue.hasBias()) {
                lt.matmul(GEMM, epilogue, a, b, c, bias, stream);
                assertThat(fake.last()).contains("e=" + epilogue.code() + " bias=" + hex(bias));
            } else {
                lt.matmul(GEMM, epilogue, a, b, c, stream);
                assertThat(fake.last()).contains("e=" + epilogue.code() + " bias=0");
            }
        }
        assertThat(fake.count("heuristics")).isEqualTo(6);
    }

    @Test
    void anAlgorithmIsLookedForOnceForAShape() {
        for (int i = 0; i < 10; i++) {
            lt.matmul(GEMM.withAlpha(i), Epilogue.BIAS, a, b, c, bias.slice(256L * (i % 2), 256), stream);
            assertThat(fake.last()).contains("bias=" + Long.toHexString(bias.address() + 256L * (i % 2)));
        }
        assertThat(fake.count("heuristics")).isEqualTo(1);
    }

    @Test
    void addressesThatAreLessAlignedHaveAnotherAlgorithm() {
        lt.matmul(GEMM, a, b, c, stream);
        lt.matmul(GEMM, a.slice(16, 512), b.slice(4, 512), c.slice(128, 512), stream);
        assertThat(fake.last()).contains("algo=80008000040010 ");
        lt.matmul(GEMM, a, b, c, stream);
        assertThat(fake.count("heuristics")).isEqualTo(2);
    }

    @Test
    void whatWasNotUsedForLongIsForgotten() {
        for (int m = 1; m <= MatmulPlans.MAX_PLANS + 2; m++) {
            lt.matmul(Gemm.of(m, 1, 1), a, b, c, stream);
        }
        assertThat(fake.count("descriptors")).isEqualTo(4L * MatmulPlans.MAX_PLANS);
        lt.matmul(Gemm.of(3, 1, 1), a, b, c, stream);
        assertThat(fake.count("heuristics")).isEqualTo(MatmulPlans.MAX_PLANS + 2L);
        lt.matmul(Gemm.of(1, 1, 1), a, b, c, stream);
        lt.matmul(Gemm.of(3, 1, 1), a, b, c, stream);
        assertThat(fake.count("heuristics")).isEqualTo(MatmulPlans.MAX_PLANS + 3L);
    }

    @Test
    void noAlgorithmIsARefusalThatLeavesNothing() {
        fake.set("no_algorithm", 1);
        assertThatExceptionOfType(CublasException.class)
                .isThrownBy(() -> lt.matmul(GEMM, Epilogue.GELU, a, b, c, stream))
                .withMessageContainingAll(
                        "cublasLtMatmulAlgoGetHeuristic(", "CUBLAS_STATUS_NOT_SUPPORTED (15)", "epilogue=GELU");
        assertThat(fake.count("descriptors")).isZero();
    }

    @Test
    void aBiasIsGivenWhereItIsAdded() {
        assertThatIllegalArgumentException().isThrownBy(() -> lt.matmul(GEMM, Epilogue.BIAS, a, b, c, stream));
        assertThatIllegalArgumentException().isThrownBy(() -> lt.matmul(GEMM, Epilogue.RELU, a, b, c, bias, stream));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> lt.matmul(GEMM, Epilogue.BIAS, a, b, c, bias.slice(0, 8), stream))
                .withMessageContaining("the bias, ");
    }

    @Test
    void threadsOfBothKindsNeverMeetInAHandleOrADescriptor() throws Exception {
        CublasLt few = open(HandlePoolOptions.DEFAULT.withMaxHandles(20));
        fake.set("expected_bytes", OverFake.WORKSPACE_BYTES);
        long[] streams = {stream, over.gpu.streams().create(0)};
        OverFake.Work work = thread -> {
            for (int i = 0; i < 20; i++) {
                long on = streams[(thread + i) % 2];
                few.matmul(GEMM.withAlpha(on & 0xffff), Epilogue.RELU_BIAS, a, b, c, bias, on);
            }
        };
        OverFake.onThreads(Thread.ofPlatform(), 16, work);
        OverFake.onThreads(Thread.ofVirtual(), 500, work);
        assertThat(fake.count("products")).isEqualTo(516 * 20);
        few.close();
    }

    @Test
    void theHandleKeepsStreamAndWorkspaceForTheNextCall() {
        CublasLtHandle handle = lt.pool().handle(0, stream);
        assertThat(handle.stream()).isEqualTo(stream);
        assertThat(handle.workspaceBytes()).isEqualTo(OverFake.WORKSPACE_BYTES);
        assertThat(handle.workspace()).isNotZero();
        assertThat(lt.pool().handle(1, 0).device()).isEqualTo(1);
    }
}
