package io.cistern.suites.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaDriver;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.cublas.Cublas;
import io.cistern.handles.cublas.CublasLt;
import io.cistern.handles.cublas.ElementType;
import io.cistern.handles.cublas.Epilogue;
import io.cistern.handles.cublas.Gemm;
import io.cistern.handles.cublas.GemmBatch;
import io.cistern.handles.cudnn.Cudnn;
import io.cistern.handles.cudnn.CudnnHandle;
import io.cistern.suites.DriverUnderTest;
import io.cistern.testkit.DiscoveredCatalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Compares products of cuBLAS and cuBLASLt, for platform and virtual threads, with the same in Java. The
/// driver is the one in the system property `cistern.testkit.driver`; the simulated GPU has no such libraries,
/// so the tests are skipped there.
@Tag("handles")
@Timeout(180)
public class MatrixProducts {
    private static final int PLATFORM_THREADS = 16;
    private static final int VIRTUAL_THREADS = 10_000;
    private static final int MAX_HANDLES = 32;
    private static final int STREAMS = 8;

    private final Random random = new Random(42);
    private CudaDriver driver;
    private DeviceMemory memory;
    private Cublas cublas;
    private CublasLt lt;
    private final List<CudaStream> streams = new ArrayList<>();

    /// For JUnit.
    public MatrixProducts() {}

    @BeforeEach
    void open() {
        driver = DriverUnderTest.open();
        assumeFalse(driver.simulated(), "the simulated GPU has no cuBLAS");
        memory = DeviceMemory.builder(driver).catalog(DiscoveredCatalog.find()).open();
        memory.setCurrent("caching");
        cublas = Cublas.open(memory, HandlePoolOptions.DEFAULT.withMaxHandles(MAX_HANDLES));
        lt = CublasLt.open(memory, HandlePoolOptions.DEFAULT.withMaxHandles(MAX_HANDLES));
        for (int i = 0; i < STREAMS; i++) {
            streams.add(CudaStream.open(memory, 0));
        }
    }

    @AfterEach
    void close() {
        try (CudaDriver _ = driver) {
            if (memory != null) {
                streams.forEach(CudaStream::close);
                memory.close();
                assertThat(memory.leaks()).isEmpty();
            }
        }
    }

    private HostProduct product(Gemm gemm, int device, long stream) {
        return new HostProduct(gemm, random, memory, device, stream);
    }

    private static List<Gemm> shapes(ElementType type) {
        Gemm gemm = Gemm.of(48, 40, 56).withType(type);
        return List.of(
                gemm,
                gemm.withTransposedA(),
                gemm.withTransposedB().withAlpha(0.5),
                gemm.withTransposedA().withTransposedB().withBeta(-1),
                gemm.withLeadingDimensions(64, 72, 56).withAlpha(2).withBeta(0.25),
                Gemm.of(1, 1, 1).withType(type),
                Gemm.of(17, 5, 3).withType(type));
    }

    @Test
    void productsOfEveryType() {
        long stream = streams.getFirst().handle();
        for (ElementType type : ElementType.values()) {
            for (Gemm gemm : shapes(type)) {
                try (HostProduct product = product(gemm, 0, stream)) {
                    cublas.gemm(gemm, product.a, product.b, product.c);
                    product.assertComputed(Epilogue.NONE);
                }
                try (HostProduct product = product(gemm, 0, stream)) {
                    lt.matmul(gemm, product.a, product.b, product.c, stream);
                    product.assertComputed(Epilogue.NONE);
                }
            }
        }
    }

    @Test
    void roundedProducts() {
        Gemm gemm = Gemm.of(128, 128, 64).withTf32();
        try (HostProduct product = product(gemm, 0, streams.getFirst().handle())) {
            cublas.gemm(gemm, product.a, product.b, product.c);
            product.assertComputed(Epilogue.NONE); // eighths survive the rounding
            lt.matmul(gemm, product.a, product.b, product.c, product.c.stream());
            product.assertComputed(Epilogue.NONE);
        }
    }

    @Test
    void epilogues() {
        long stream = streams.getFirst().handle();
        for (ElementType type : List.of(ElementType.FLOAT32, ElementType.FLOAT16, ElementType.BFLOAT16)) {
            Gemm gemm = Gemm.of(64, 40, 32).withType(type).withTransposedA();
            for (Epilogue epilogue : Epilogue.values()) {
                try (HostProduct product = product(gemm, 0, stream)) {
                    if (epilogue.hasBias()) {
                        lt.matmul(gemm, epilogue, product.a, product.b, product.c, product.bias, stream);
                    } else {
                        lt.matmul(gemm, epilogue, product.a, product.b, product.c, stream);
                    }
                    product.assertComputed(epilogue);
                }
            }
        }
    }

    @Test
    void manyProductsAtOnce() {
        int count = 6;
        Gemm one = Gemm.of(8, 8, 8);
        GemmBatch batch = one.batch(count);
        // Every product has the same A and an equal B, so each result must equal that of a single product.
        try (HostProduct first = product(one, 0, streams.getFirst().handle());
                DeviceBuffer a = repeated(first.a, count);
                DeviceBuffer b = repeated(first.b, count);
                DeviceBuffer c = repeated(first.c, count)) {
            cublas.gemmStridedBatched(batch.withStrides(0, batch.strideB(), batch.strideC()), a, b, c);
            cublas.gemm(one, first.a, first.b, first.c);
            first.assertComputed(Epilogue.NONE);
            double[] expected = Elements.read(one.type(), first.c, 64);
            double[] all = Elements.read(one.type(), c, 64 * count);
            for (int i = 0; i < all.length; i++) {
                assertThat(all[i]).as("element %d", i).isEqualTo(expected[i % 64]);
            }
        }
    }

    private DeviceBuffer repeated(DeviceBuffer buffer, int count) {
        DeviceBuffer all = DeviceBuffer.allocate(memory, buffer.byteSize() * count, 0, buffer.stream());
        for (int i = 0; i < count; i++) {
            all.slice(i * buffer.byteSize(), buffer.byteSize()).copyFrom(buffer);
        }
        return all;
    }

    @Test
    void addressesThatAreHardlyAligned() {
        Gemm gemm = Gemm.of(32, 32, 32).withType(ElementType.FLOAT16);
        long stream = streams.getFirst().handle();
        try (HostProduct product = product(gemm, 0, stream);
                DeviceBuffer a = DeviceBuffer.allocate(memory, 4096, 0, stream)) {
            for (int offset : new int[] {2, 4, 8, 16, 32, 0}) {
                DeviceBuffer moved = a.slice(offset, product.a.byteSize());
                moved.copyFrom(product.a);
                lt.matmul(gemm, Epilogue.NONE, moved, product.b, product.c, stream);
                product.assertComputed(Epilogue.NONE);
                cublas.gemm(gemm, moved, product.b, product.c, stream);
                product.assertComputed(Epilogue.NONE);
            }
        }
    }

    @Test
    void everyDeviceFromAThreadOfItsOwn() throws InterruptedException {
        Gemm gemm = Gemm.of(20, 30, 40);
        onThreads(Thread.ofPlatform(), driver.devices().count(), device -> {
            try (CudaStream stream = CudaStream.open(memory, device);
                    HostProduct product = new HostProduct(gemm, new Random(device), memory, device, stream.handle())) {
                cublas.gemm(gemm, product.a, product.b, product.c);
                product.assertComputed(Epilogue.NONE);
                lt.matmul(gemm, product.a, product.b, product.c, stream.handle());
                product.assertComputed(Epilogue.NONE);
            }
        });
    }

    @Test
    void buffersOfAnotherStreamThatAreClosedAtOnce() {
        Gemm gemm = Gemm.of(512, 512, 512);
        long other = streams.getLast().handle();
        for (int round = 0; round < 20; round++) {
            long stream = streams.getFirst().handle();
            try (HostProduct product = product(gemm, 0, stream)) {
                DeviceBuffer passing = product.a.copy().moveToStream(other);
                streams.getLast().synchronize();
                cublas.gemm(gemm, passing, product.b, product.c, stream);
                passing.close();
                try (DeviceBuffer next = DeviceBuffer.allocate(memory, product.a.byteSize(), 0, other)) {
                    next.fill((byte) -1, other); // NaN shows if this memory is still being multiplied
                }
                streams.getFirst().synchronize();
                if (round % 10 == 0) {
                    product.assertComputed(Epilogue.NONE);
                } else {
                    assertThat(Elements.read(gemm.type(), product.c, 512 * 512)).doesNotContain(Double.NaN);
                }
            }
        }
    }

    @Test
    void sixteenThreadsOnStreamsOfTheirOwn() throws InterruptedException {
        onThreads(Thread.ofPlatform(), PLATFORM_THREADS, thread -> {
            Gemm gemm = Gemm.of(16 + thread, 24, 32);
            try (CudaStream first = CudaStream.open(memory, 0);
                    CudaStream second = CudaStream.open(memory, 0)) {
                for (int i = 0; i < 50; i++) {
                    long stream = (i % 5 == 0 ? first : second).handle();
                    try (HostProduct product = new HostProduct(gemm, new Random(i), memory, 0, stream)) {
                        cublas.gemm(gemm, product.a, product.b, product.c);
                        product.assertComputed(Epilogue.NONE);
                        lt.matmul(gemm, Epilogue.RELU_BIAS, product.a, product.b, product.c, product.bias, stream);
                        product.assertComputed(Epilogue.RELU_BIAS);
                    }
                }
            }
        });
        assertThat(cublas.pool().statistics(0).created()).isBetween(1L, (long) PLATFORM_THREADS);
    }

    @Test
    void tenThousandVirtualThreads() throws InterruptedException {
        Gemm gemm = Gemm.of(8, 12, 16);
        onThreads(Thread.ofVirtual(), VIRTUAL_THREADS, thread -> {
            long stream = streams.get(thread % STREAMS).handle();
            try (HostProduct product = new HostProduct(gemm, new Random(thread), memory, 0, stream)) {
                cublas.gemm(gemm, product.a, product.b, product.c);
                if (thread % 2 == 0) {
                    lt.matmul(gemm, Epilogue.BIAS, product.a, product.b, product.c, product.bias, stream);
                }
                product.assertComputed(thread % 2 == 0 ? Epilogue.BIAS : Epilogue.NONE);
            }
        });
        assertThat(cublas.pool().statistics(0).created()).isBetween(1L, (long) MAX_HANDLES);
    }

    @Test
    void productsInAGraph() {
        Gemm gemm = Gemm.of(64, 32, 48);
        CudaStream stream = streams.getFirst();
        try (HostProduct product = product(gemm, 0, stream.handle())) {
            try (CudaGraph graph = captured(gemm, product, stream.handle())) {
                cublas.close();
                for (int i = 0; i < 3; i++) {
                    product.c.fill((byte) 0);
                    graph.launch(stream.handle());
                    product.assertComputed(Epilogue.GELU_BIAS);
                }
            }
        }
    }

    private CudaGraph captured(Gemm gemm, HostProduct product, long stream) {
        try (GraphCapture capture = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            cublas.gemm(gemm, product.a, product.b, product.c);
            lt.matmul(gemm, Epilogue.GELU_BIAS, product.a, product.b, product.c, product.bias, stream);
            return capture.endAndInstantiate();
        }
    }

    @Test
    void handlesOfCudnn() {
        assumeTrue(Cudnn.availability().available(), () -> Cudnn.availability().reason());
        try (Cudnn cudnn = Cudnn.open(memory)) {
            CudnnHandle handle = cudnn.pool().handle(0, streams.getFirst().handle());
            assertThat(handle.value()).isNotZero();
            assertThat(cudnn.pool().handle(0, streams.getLast().handle())).isSameAs(handle);
            assertThat(cudnn.version()).isGreaterThanOrEqualTo(8000);
        }
    }

    private interface Work {
        void run(int thread) throws Exception;
    }

    private static void onThreads(Thread.Builder builder, int count, Work work) throws InterruptedException {
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            threads.add(builder.start(() -> {
                try {
                    work.run(number);
                } catch (Throwable failure) {
                    failures.add(failure);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failures).isEmpty();
    }
}
