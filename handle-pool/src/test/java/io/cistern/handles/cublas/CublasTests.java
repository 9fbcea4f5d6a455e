package io.cistern.handles.cublas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.handles.HandleException;
import io.cistern.handles.HandleLease;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.fake.FakeLibraries;
import io.cistern.handles.fake.OverFake;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What arrives at cuBLAS, from how many threads.
class CublasTests {
    private static final Gemm GEMM = Gemm.of(3, 5, 7);

    @TempDir
    private static Path folder;

    private static FakeLibraries fake;

    private OverFake over;
    private Cublas cublas;
    private long stream;
    private DeviceBuffer a;
    private DeviceBuffer b;
    private DeviceBuffer c;

    @BeforeAll
    static void compile() {
        fake = new FakeLibraries(folder, "libcublas.so.12");
    }

    @BeforeEach
    void open() {
        over = new OverFake(fake);
        cublas = open(HandlePoolOptions.DEFAULT);
        stream = over.gpu.streams().create(0);
        a = over.buffer(1024, 0, stream);
        b = over.buffer(1024, 0, stream);
        c = over.buffer(1024, 0, stream);
    }

    private Cublas open(HandlePoolOptions options) {
        return Cublas.open(over.memory, CublasFunctions.load(fake.path()), options);
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
        cublas.gemm(GEMM.withTransposedB().withAlpha(2.5).withBeta(-1).withLeadingDimensions(4, 6, 8), a, b, c);
        assertThat(fake.last())
                .isEqualTo("0 1 3 5 7 2.5 a=%s 0 4 b=%s 0 6 -1 c=%s 0 8 68 -1".formatted(hex(a), hex(b), hex(c)));
        cublas.gemm(GEMM.withTransposedA().withType(ElementType.FLOAT64).withAlpha(0.1), a, b, c, stream);
        assertThat(fake.last())
                .isEqualTo("1 0 3 5 7 0.1 a=%s 1 7 b=%s 1 7 0 c=%s 1 3 70 -1".formatted(hex(a), hex(b), hex(c)));
    }

    @Test
    void everyTypeHasItsNumbers() {
        cublas.gemm(GEMM.withType(ElementType.FLOAT16), a, b, c);
        assertThat(fake.last()).contains(" 2 3 ").endsWith(" 68 -1");
        cublas.gemm(GEMM.withType(ElementType.BFLOAT16), a, b, c);
        assertThat(fake.last()).contains(" 14 3 ").endsWith(" 68 -1");
        cublas.gemm(GEMM.withTf32(), a, b, c);
        assertThat(fake.last()).contains(" 0 3 ").endsWith(" 77 -1");
    }

    @Test
    void manyProductsArriveAtOnce() {
        cublas.gemmStridedBatched(GEMM.batch(4).withStrides(0, 36, 16), a, b, c);
        assertThat(fake.last())
                .isEqualTo(
                        "0 0 3 5 7 1 a=%s 0 3 0 b=%s 0 7 36 0 c=%s 0 3 16 * 4 68 -1".formatted(hex(a), hex(b), hex(c)));
    }

    @Test
    void aSliceIsAnOperand() {
        cublas.gemm(GEMM, a.slice(4, 100), b, c);
        assertThat(fake.last()).contains("a=" + Long.toHexString(a.address() + 4));
    }

    @Test
    void buffersThatDoNotFitAreRefusedBeforeTheLibraryIsCalled() {
        DeviceBuffer elsewhere = over.buffer(1024, 1, 0);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> cublas.gemm(GEMM, a, b.slice(0, 139), c))
                .withMessageContainingAll("B, ", "35 elements of FLOAT32", "Gemm[m=3, n=5, k=7");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> cublas.gemm(GEMM, elsewhere, b, c))
                .withMessageContaining("lies on another device than C");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> cublas.gemm(GEMM, a.slice(2, 800), b, c))
                .withMessageContaining("begins at no multiple of 4 bytes");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> cublas.gemm(GEMM, a, b, b))
                .withMessageContaining("overlaps C");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> cublas.gemmStridedBatched(GEMM.batch(18).withStrides(0, 0, 15), a, b, c))
                .withMessageContainingAll("C, ", "270 elements");
        c.close();
        assertThatIllegalStateException().isThrownBy(() -> cublas.gemm(GEMM, a, b, c));
        assertThat(fake.count("created")).isZero();
    }

    @Test
    void aRefusalNamesFunctionStatusAndArguments() {
        fake.set("failing_status", 15);
        assertThatExceptionOfType(CublasException.class)
                .isThrownBy(() -> cublas.gemm(GEMM, a, b, c))
                .withMessageContainingAll(
                        "cublasGemmEx(CublasHandle[", "CUBLAS_STATUS_NOT_SUPPORTED (15)", "m=3", "multiples of 16")
                .satisfies(refusal -> assertThat(refusal.status()).isEqualTo(15));
    }

    @Test
    void aHandleThatIsNotCreatedIsTriedOnceMore() {
        fake.set("failing_creates", 1);
        cublas.gemm(GEMM, a, b, c);
        assertThat(fake.count("created")).isEqualTo(1);
    }

    @Test
    void whatTheLibrarySaysIsTheCauseOfNoHandle() {
        fake.set("failing_creates", 2);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> cublas.gemm(GEMM, a, b, c))
                .withMessageContaining("CUBLAS_STATUS_ALLOC_FAILED")
                .withCauseInstanceOf(CublasException.class);
        cublas.gemm(GEMM, a, b, c);
    }

    @Test
    void everyThreadHasAHandleOfItsOwnWithItsStream() throws Exception {
        fake.set("expected_bytes", OverFake.WORKSPACE_BYTES);
        OverFake.onThreads(Thread.ofPlatform(), 16, thread -> {
            long[] streams = {over.gpu.streams().create(0), over.gpu.streams().create(0)};
            for (int i = 0; i < 200; i++) {
                long on = streams[i / 10 % 2];
                cublas.gemm(GEMM.withAlpha(on & 0xffff), a, b, c, on);
            }
        });
        assertThat(fake.count("products")).isEqualTo(3200);
        assertThat(fake.count("created")).isBetween(1L, 16L);
    }

    @Test
    void virtualThreadsShareAFewHandles() throws Exception {
        Cublas few = open(HandlePoolOptions.DEFAULT.withMaxHandles(4));
        fake.set("expected_bytes", OverFake.WORKSPACE_BYTES);
        long[] streams = {
            stream, over.gpu.streams().create(0), over.gpu.streams().create(0)
        };
        OverFake.onThreads(Thread.ofVirtual(), 2000, thread -> {
            long on = streams[thread % 3];
            few.gemm(GEMM.withAlpha(on & 0xffff), a, b, c, on);
            few.gemmStridedBatched(GEMM.withAlpha(on & 0xffff).batch(2), a, b, c, on);
        });
        assertThat(fake.count("products")).isEqualTo(4000);
        assertThat(fake.count("created")).isBetween(1L, 4L);
        few.close();
    }

    @Test
    void aVirtualThreadsLeaseIsUsed() throws Exception {
        OverFake.onThreads(Thread.ofVirtual(), 1, thread -> {
            try (HandleLease<CublasHandle> lease = cublas.pool().lease(0)) {
                CublasHandle leased = lease.handle(stream);
                cublas.gemm(GEMM, a, b, c, stream);
                assertThat(lease.handle(stream)).isSameAs(leased);
            }
        });
        assertThat(fake.count("created")).isEqualTo(1);
    }

    @Test
    void aBufferOfAnotherStreamMayBeClosedAtOnce() {
        long other = over.gpu.streams().create(0);
        DeviceBuffer passing = DeviceBuffer.allocate(over.memory, 1024, 0, other);
        cublas.gemm(GEMM, passing, b, c, stream);
        passing.close();
        assertThat(fake.count("products")).isEqualTo(1);
    }

    @Test
    void closingDestroysTheHandles() {
        cublas.gemm(GEMM, a, b, c);
        cublas.close();
        assertThat(fake.count("destroyed")).isEqualTo(1);
        assertThatIllegalStateException().isThrownBy(() -> cublas.gemm(GEMM, a, b, c));
    }

    @Test
    void theVersionIsForPeople() {
        assertThat(cublas).hasToString(fake.path() + ", version 13.1.2");
    }
}
