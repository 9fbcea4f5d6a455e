package io.cistern.javacpp;

import static io.cistern.javacpp.CisternMalloc.cudaFree;
import static io.cistern.javacpp.CisternMalloc.cudaFreeAsync;
import static io.cistern.javacpp.CisternMalloc.cudaMalloc;
import static io.cistern.javacpp.CisternMalloc.cudaMalloc3D;
import static io.cistern.javacpp.CisternMalloc.cudaMallocAsync;
import static io.cistern.javacpp.CisternMalloc.cudaMallocManaged;
import static io.cistern.javacpp.CisternMalloc.cudaMallocPitch;
import static io.cistern.javacpp.DeviceProduct.check;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;
import static org.bytedeco.cuda.global.cublas.*;
import static org.bytedeco.cuda.global.cudart.*;
import static org.bytedeco.cuda.global.cudnn.*;
import static org.bytedeco.cuda.global.cusolver.*;
import static org.bytedeco.cuda.global.cusparse.*;
import static org.junit.jupiter.api.Assumptions.abort;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.javacpp.DeviceProduct.Shape;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.ToIntBiFunction;
import java.util.function.ToLongFunction;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.cublas.cublasLtMatmulDescOpaque_t;
import org.bytedeco.cuda.cublas.cublasLtMatrixLayoutOpaque_t;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudart.cudaExtent;
import org.bytedeco.cuda.cudart.cudaPitchedPtr;
import org.bytedeco.cuda.cudnn.cudnnContext;
import org.bytedeco.cuda.cudnn.cudnnTensorStruct;
import org.bytedeco.cuda.cusolver.cusolverDnContext;
import org.bytedeco.cuda.cusparse.cusparseContext;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The presets themselves on Cistern's memory, with pooled handles: each result is checked.
@Tag("gpu")
@Timeout(180)
class RealJavaCppGpuTests {
    private static final int PLATFORM_THREADS = 16;
    private static final int VIRTUAL_THREADS = 10_000;
    private static final int MAX_HANDLES = 32;
    private static final int STREAMS = 8;
    private static final long TOO_MUCH = 1L << 46;

    private final DeviceMemory memory = DeviceMemory.system();
    private final Random random = new Random(42);
    private final List<CudaStream> streams = new ArrayList<>();
    private final List<HandlePool<?>> pools = new ArrayList<>();
    private long stream;

    @BeforeEach
    void open() {
        for (int i = 0; i < STREAMS; i++) {
            streams.add(CudaStream.open(memory, 0));
        }
        stream = streams.getFirst().handle();
        check(cudaSetDevice(0));
    }

    /// The driver tells of the end of a graph a little later, on its own thread.
    @AfterEach
    void close() throws InterruptedException {
        pools.forEach(HandlePool::close);
        streams.forEach(CudaStream::close);
        for (int i = 0; i < 1000 && !memory.liveBlocks().isEmpty(); i++) {
            GraphMemory.collect(memory);
            Thread.sleep(1);
        }
        assertThat(memory.liveBlocks()).isEmpty();
    }

    private <H> HandlePool<H> pool(HandleLibrary<H> library) {
        HandlePool<H> pool = HandlePool.open(memory, library, HandlePoolOptions.DEFAULT.withMaxHandles(MAX_HANDLES));
        pools.add(pool);
        return pool;
    }

    private HandlePool<cublasContext> cublasPool() {
        return pool(CudaLibraries.cublas(memory));
    }

    private HandlePool<cudnnContext> cudnnPool() {
        try {
            return pool(CudaLibraries.cudnn());
        } catch (UnsupportedOperationException absent) {
            return abort(absent.getMessage());
        }
    }

    private DeviceProduct product(Shape shape) {
        return new DeviceProduct(shape, random, memory, 0, stream);
    }

    private CUstream_st preset() {
        return JavaCppStreams.of(streams.getFirst());
    }

    private float[] floats(Pointer source, int count) {
        float[] values = new float[count];
        try (FloatPointer host = new FloatPointer((long) count)) {
            check(cudaMemcpyAsync(host, source, 4L * count, cudaMemcpyDeviceToHost, preset()));
            check(cudaStreamSynchronize(preset()));
            host.get(values);
        }
        return values;
    }

    private DevicePointer sent(Pointer host, long byteSize) {
        DevicePointer device = DevicePointer.allocate(byteSize, streams.getFirst());
        check(cudaMemcpyAsync(device, host, byteSize, cudaMemcpyHostToDevice, preset()));
        check(cudaStreamSynchronize(preset()));
        return device;
    }

    @Test
    void productsOfBlocks() {
        HandlePool<cublasContext> pool = cublasPool();
        for (Shape shape : List.of(
                Shape.of(1, 1, 1),
                Shape.of(17, 5, 3),
                Shape.of(48, 40, 56),
                new Shape(48, 40, 56, true, false, 1, 0, 0),
                new Shape(48, 40, 56, false, true, 0.5f, 0, 0),
                new Shape(48, 40, 56, true, true, 1, -1, 0),
                new Shape(48, 40, 56, false, false, 2, 0.25f, 16))) {
            try (DeviceProduct product = product(shape)) {
                product.multiply(pool.handle(0, stream));
                product.assertComputed();
            }
        }
    }

    @Test
    void aWrongLeadingDimensionIsRefusedByTheLibrary() {
        HandlePool<cublasContext> pool = cublasPool();
        try (DeviceProduct product = product(Shape.of(8, 8, 8))) {
            assertThat(product.multiply(pool.handle(0, stream), 7)).isEqualTo(CUBLAS_STATUS_INVALID_VALUE);
            product.multiply(pool.handle(0, stream));
            product.assertComputed();
        }
    }

    @Test
    void productsOfMemoryFromCudaMalloc() {
        int side = 64;
        float[] host = new float[side * side];
        Arrays.fill(host, 2);
        FloatPointer matrix = new FloatPointer();
        FloatPointer result = new FloatPointer();
        check(cudaMalloc(matrix, 4L * host.length));
        check(cudaMalloc(result, 4L * host.length));
        try (FloatPointer sent = new FloatPointer(host);
                FloatPointer one = new FloatPointer(1f);
                FloatPointer zero = new FloatPointer(0f)) {
            check(cudaMemcpy(matrix, sent, 4L * host.length, cudaMemcpyHostToDevice));
            int plain = CUBLAS_OP_N;
            cublasContext handle = cublasPool().handle(0, 0);
            check(cublasSgemm_v2(
                    handle, plain, plain, side, side, side, one, matrix, side, matrix, side, zero, result, side));
            check(cudaMemcpy(sent, result, 4L * host.length, cudaMemcpyDeviceToHost));
            sent.get(host);
        }
        assertThat(host).containsOnly(4f * side);
        check(cudaFree(matrix));
        check(cudaFree(result));
    }

    @Test
    void memoryOfEveryFunctionCanBeUsed() {
        byte[] host = new byte[1];
        Pointer pointer = new Pointer();
        try (BytePointer got = new BytePointer(1L);
                SizeTPointer pitch = new SizeTPointer(1);
                SizeTPointer runtimes = new SizeTPointer(1);
                cudaPitchedPtr pitched = new cudaPitchedPtr()) {
            check(cudaMallocAsync(pointer, 1000, preset()));
            check(cudaMemsetAsync(pointer, 7, 1000, preset()));
            check(cudaMemcpyAsync(got, pointer, 1, cudaMemcpyDeviceToHost, preset()));
            check(cudaStreamSynchronize(preset()));
            got.get(host);
            assertThat(host).containsExactly(7);
            check(cudaFreeAsync(pointer, preset()));
            check(org.bytedeco.cuda.global.cudart.cudaMallocPitch(pointer, runtimes, 1000, 3));
            check(org.bytedeco.cuda.global.cudart.cudaFree(pointer));
            check(cudaMallocPitch(pointer, pitch, 1000, 3));
            assertThat(pitch.get()).isEqualTo(runtimes.get());
            check(cudaMemset(pointer, 1, 3 * pitch.get()));
            check(cudaFree(pointer));
            check(cudaMalloc3D(pitched, new cudaExtent().width(1000).height(10).depth(4)));
            check(cudaMemset3D(
                    pitched, 1, new cudaExtent().width(1000).height(10).depth(4)));
            check(cudaFree(pitched.ptr()));
            check(cudaMallocManaged(pointer, 4096));
            check(cudaFree(pointer));
            assertThat(cudaFree(pointer)).as("freed twice").isEqualTo(cudaErrorInvalidValue);
        }
    }

    @Test
    void memoryThatIsNotThereIsCudasResult() {
        assertThat(cudaMalloc(new Pointer(), TOO_MUCH)).isEqualTo(cudaErrorMemoryAllocation);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> DevicePointer.allocate(TOO_MUCH, streams.getFirst()));
    }

    private <H> void assertStreamsAreSet(HandlePool<H> pool, ToLongFunction<H> streamOf) {
        H handle = pool.handle(0, stream);
        for (CudaStream each : streams) {
            assertThat(pool.handle(0, each.handle())).isSameAs(handle);
            assertThat(streamOf.applyAsLong(handle)).isEqualTo(each.handle());
        }
        pool.close();
        assertThat(pool.statistics(0).failedDestructions()).isZero();
        assertThat(pool.statistics(0).alive()).isZero();
    }

    /// Asks the library.
    private static <H> ToLongFunction<H> asked(ToIntBiFunction<H, CUstream_st> getStream) {
        return handle -> {
            CUstream_st set = new CUstream_st();
            check(getStream.applyAsInt(handle, set));
            return set.address();
        };
    }

    @Test
    void eachLibraryHasTheStreamThatThePoolSet() {
        assertStreamsAreSet(cublasPool(), asked((handle, set) -> cublasGetStream_v2(handle, set)));
        assertStreamsAreSet(
                pool(CudaLibraries.cublasLt(memory)), handle -> handle.stream().address());
        assertStreamsAreSet(pool(CudaLibraries.cusparse()), asked((handle, set) -> cusparseGetStream(handle, set)));
        assertStreamsAreSet(pool(CudaLibraries.cusolver()), asked((handle, set) -> cusolverDnGetStream(handle, set)));
    }

    @Test
    void productsOfCublasLt() {
        CublasLtHandle lt = pool(CudaLibraries.cublasLt(memory)).handle(0, stream);
        try (DeviceProduct product = product(Shape.of(32, 24, 16));
                PointerPointer<Pointer> made = new PointerPointer<>(4);
                FloatPointer one = new FloatPointer(1f);
                FloatPointer zero = new FloatPointer(0f)) {
            check(cublasLtMatmulDescCreate(made.position(0), CUBLAS_COMPUTE_32F, CUDA_R_32F));
            check(cublasLtMatrixLayoutCreate(made.position(1), CUDA_R_32F, 32, 16, 32));
            check(cublasLtMatrixLayoutCreate(made.position(2), CUDA_R_32F, 16, 24, 16));
            check(cublasLtMatrixLayoutCreate(made.position(3), CUDA_R_32F, 32, 24, 32));
            made.position(0);
            var multiplication = new cublasLtMatmulDescOpaque_t(made.get(0));
            var a = new cublasLtMatrixLayoutOpaque_t(made.get(1));
            var b = new cublasLtMatrixLayoutOpaque_t(made.get(2));
            var c = new cublasLtMatrixLayoutOpaque_t(made.get(3));
            check(cublasLtMatmul(
                    lt.context(),
                    multiplication,
                    one,
                    product.a,
                    a,
                    product.b,
                    b,
                    zero,
                    product.c,
                    c,
                    product.c,
                    c,
                    null,
                    lt.workspace(),
                    lt.workspace().capacity(),
                    lt.stream()));
            product.assertComputed();
            check(cublasLtMatrixLayoutDestroy(a));
            check(cublasLtMatrixLayoutDestroy(b));
            check(cublasLtMatrixLayoutDestroy(c));
            check(cublasLtMatmulDescDestroy(multiplication));
        }
    }

    @Test
    void cudnnFillsATensor() {
        HandlePool<cudnnContext> pool = cudnnPool();
        cudnnTensorStruct tensor = new cudnnTensorStruct();
        check(cudnnCreateTensorDescriptor(tensor));
        check(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 3, 4));
        try (DevicePointer values = DevicePointer.allocate(4 * 24, streams.getFirst());
                FloatPointer value = new FloatPointer(2.5f)) {
            check(cudnnSetTensor(pool.handle(0, stream), tensor, values, value));
            assertThat(floats(values, 24)).containsOnly(2.5f);
        }
        check(cudnnDestroyTensorDescriptor(tensor));
        assertStreamsAreSet(pool, asked((handle, set) -> cudnnGetStream(handle, set)));
    }

    @Test
    void cusparseCompressesRows() {
        cusparseContext handle = pool(CudaLibraries.cusparse()).handle(0, stream);
        int[] rows = new int[5];
        try (IntPointer host = new IntPointer(0, 0, 1, 3, 3, 3);
                DevicePointer coordinates = sent(host, 4 * 6);
                DevicePointer compressed = DevicePointer.allocate(4 * 5, streams.getFirst());
                IntPointer got = new IntPointer(5L)) {
            check(cusparseXcoo2csr(
                    handle, new IntPointer(coordinates), 6, 4, new IntPointer(compressed), CUSPARSE_INDEX_BASE_ZERO));
            check(cudaMemcpyAsync(got, compressed, 4 * 5, cudaMemcpyDeviceToHost, preset()));
            check(cudaStreamSynchronize(preset()));
            got.get(rows);
        }
        assertThat(rows).containsExactly(0, 2, 3, 3, 6);
    }

    @Test
    void cusolverFactorises() {
        cusolverDnContext handle = pool(CudaLibraries.cusolver()).handle(0, stream);
        try (FloatPointer host = new FloatPointer(4f, 2f, 2f, 3f);
                DevicePointer matrix = sent(host, 4 * 4);
                IntPointer count = new IntPointer(1L);
                DevicePointer info = DevicePointer.allocate(4, streams.getFirst())) {
            FloatPointer values = new FloatPointer(matrix);
            check(cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, 2, values, 2, count));
            try (DevicePointer work = DevicePointer.allocate(4L * count.get(), streams.getFirst())) {
                check(cusolverDnSpotrf(
                        handle,
                        CUBLAS_FILL_MODE_LOWER,
                        2,
                        values,
                        2,
                        new FloatPointer(work),
                        count.get(),
                        new IntPointer(info)));
            }
            float[] lower = floats(matrix, 4);
            assertThat(lower[0]).isEqualTo(2);
            assertThat(lower[1]).isEqualTo(1);
            assertThat((double) lower[3]).isCloseTo(Math.sqrt(2), within(1e-6));
        }
    }

    @Test
    void blocksThatAreClosedAtOnceServeOthersAfterTheProduct() {
        HandlePool<cublasContext> pool = cublasPool();
        CudaStream other = streams.getLast();
        for (int round = 0; round < 20; round++) {
            try (DeviceProduct product = product(Shape.of(512, 512, 512))) {
                product.multiply(pool.handle(0, stream));
                product.a.close();
                product.b.close();
                try (DevicePointer next = DevicePointer.allocate(4 * 512 * 512, streams.getFirst());
                        DevicePointer another = DevicePointer.allocate(4 * 512 * 512, other)) {
                    check(cudaMemsetAsync(next, -1, 4 * 512 * 512, preset())); // NaN, if this is still multiplied
                    check(cudaMemsetAsync(another, -1, 4 * 512 * 512, JavaCppStreams.of(other)));
                }
                if (round % 10 == 0) {
                    product.assertComputed();
                } else {
                    assertThat(floats(product.c, 512 * 512)).doesNotContain(Float.NaN);
                }
            }
        }
    }

    @Test
    void sixteenThreadsOnStreamsOfTheirOwn() throws InterruptedException {
        HandlePool<cublasContext> pool = cublasPool();
        onThreads(Thread.ofPlatform(), PLATFORM_THREADS, thread -> {
            Shape shape = Shape.of(16 + thread, 24, 32);
            try (CudaStream first = CudaStream.open(memory, 0);
                    CudaStream second = CudaStream.open(memory, 0)) {
                for (int i = 0; i < 50; i++) {
                    long mine = (i % 5 == 0 ? first : second).handle();
                    try (DeviceProduct product = new DeviceProduct(shape, new Random(i), memory, 0, mine)) {
                        product.multiply(pool.handle(0, mine));
                        product.assertComputed();
                    }
                }
            }
        });
        assertThat(pool.statistics(0).created()).isBetween(1L, (long) PLATFORM_THREADS);
    }

    @Test
    void tenThousandVirtualThreads() throws InterruptedException {
        HandlePool<cublasContext> pool = cublasPool();
        onThreads(Thread.ofVirtual(), VIRTUAL_THREADS, thread -> {
            long mine = streams.get(thread % STREAMS).handle();
            try (DeviceProduct product = new DeviceProduct(Shape.of(8, 12, 16), new Random(thread), memory, 0, mine);
                    var lease = pool.lease(0)) {
                product.multiply(lease.handle(mine));
                product.assertComputed();
            }
        });
        assertThat(pool.statistics(0).created()).isBetween(1L, (long) MAX_HANDLES);
    }

    @Test
    void everyDeviceFromAThreadOfItsOwn() throws InterruptedException {
        HandlePool<cublasContext> pool = cublasPool();
        onThreads(Thread.ofPlatform(), memory.driver().devices().count(), device -> {
            check(cudaSetDevice(device));
            try (CudaStream own = CudaStream.open(memory, device);
                    DeviceProduct product =
                            new DeviceProduct(Shape.of(20, 30, 40), new Random(device), memory, device, own.handle())) {
                product.multiply(pool.handle(device, own.handle()));
                product.assertComputed();
            }
        });
        assertThat(pool.statistics(0).failedCreations()).isZero();
    }

    @Test
    void productsInAGraph() {
        HandlePool<cublasContext> pool = cublasPool();
        try (DeviceProduct product = product(Shape.of(64, 32, 48));
                DeviceProduct before = product(Shape.of(64, 32, 48))) {
            before.multiply(cublasPool().handle(0, stream)); // cuBLAS loads its code outside the capture
            streams.getFirst().synchronize();
            assertCaptured(pool, product);
        }
    }

    /// The handle is created beside the capture, and outlives its pool.
    private void assertCaptured(HandlePool<cublasContext> pool, DeviceProduct product) {
        try (CudaGraph graph = captured(pool, product)) {
            pool.close();
            for (int i = 0; i < 3; i++) {
                check(cudaMemsetAsync(product.c, 0, 4 * 64 * 32, preset()));
                graph.launch(stream);
                product.assertComputed();
            }
        }
    }

    private CudaGraph captured(HandlePool<cublasContext> pool, DeviceProduct product) {
        try (GraphCapture capture = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            product.multiply(pool.handle(0, stream));
            return capture.endAndInstantiate();
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
