package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolStatistics;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUstream;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import jcuda.jcublas.cublasOperation;
import jcuda.runtime.JCuda;
import jcuda.runtime.cudaMemcpyKind;
import jcuda.runtime.cudaStream_t;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Products of JCublas on Cistern's memory with pooled handles, on every device of the machine.
@Tag("gpu")
class RealJCublasGpuTests {
    private static final int THREADS = 8;
    private static final int PRODUCTS = 20;
    private static final int SIDE = 64;

    private final DeviceMemory memory = DeviceMemory.system();
    private final int deviceCount = memory.driver().devices().count();
    private HandlePool<cublasHandle> pool;

    @BeforeEach
    void open() {
        JCuda.setExceptionsEnabled(true);
        JCublas2.setExceptionsEnabled(true);
        pool = HandlePool.open(memory, JCublasHandles.library(memory));
    }

    @AfterEach
    void close() {
        pool.close();
        JCuda.setExceptionsEnabled(false);
        JCublas2.setExceptionsEnabled(false);
    }

    @Test
    void manyThreadsMultiplyOnStreamsOfTheirOwn() throws InterruptedException, ExecutionException {
        List<Callable<float[]>> work = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            int factor = i + 1;
            work.add(() -> products(factor, factor % deviceCount));
        }
        try (ExecutorService executor = Executors.newFixedThreadPool(THREADS)) {
            List<Future<float[]>> results = executor.invokeAll(work);
            for (int i = 0; i < THREADS; i++) {
                assertThat(results.get(i).get()).containsOnly(2.0f * (i + 1) * SIDE);
            }
        }
        for (int device = 0; device < deviceCount; device++) {
            HandlePoolStatistics statistics = pool.statistics(device);
            assertThat(statistics.created()).isBetween(1L, (long) THREADS);
            assertThat(statistics.failedCreations()).isZero();
        }
        pool.close();
        assertThat(IntStream.range(0, deviceCount)
                        .mapToLong(device -> pool.statistics(device).alive())
                        .sum())
                .isZero();
        assertThat(memory.liveBlocks()).isEmpty();
    }

    /// @return a matrix of twos multiplied by one of `factor`
    private float[] products(int factor, int device) {
        float[] result = new float[SIDE * SIDE];
        JCuda.cudaSetDevice(device);
        cudaStream_t stream = new cudaStream_t();
        JCuda.cudaStreamCreate(stream);
        List<Pointer> matrices = List.of(filled(2), filled(factor), filled(0));
        for (int i = 0; i < PRODUCTS; i++) {
            cublasHandle handle = pool.handle(device, JCudaStreams.handle(new CUstream(stream)));
            multiply(handle, matrices.get(0), matrices.get(1), matrices.get(2));
        }
        JCuda.cudaStreamSynchronize(stream);
        JCuda.cudaMemcpy(
                Pointer.to(result),
                matrices.get(2),
                (long) result.length * Sizeof.FLOAT,
                cudaMemcpyKind.cudaMemcpyDeviceToHost);
        matrices.forEach(CisternMalloc::cudaFree);
        JCudaStreams.foreign(memory, device, stream).announceEnd();
        JCuda.cudaStreamDestroy(stream);
        return result;
    }

    private static Pointer filled(float value) {
        float[] elements = new float[SIDE * SIDE];
        Arrays.fill(elements, value);
        Pointer matrix = new Pointer();
        long byteSize = (long) elements.length * Sizeof.FLOAT;
        CisternMalloc.cudaMalloc(matrix, byteSize);
        JCuda.cudaMemcpy(matrix, Pointer.to(elements), byteSize, cudaMemcpyKind.cudaMemcpyHostToDevice);
        return matrix;
    }

    private static void multiply(cublasHandle handle, Pointer a, Pointer b, Pointer c) {
        int plain = cublasOperation.CUBLAS_OP_N;
        Pointer one = Pointer.to(new float[] {1});
        Pointer zero = Pointer.to(new float[] {0});
        JCublas2.cublasSgemm(handle, plain, plain, SIDE, SIDE, SIDE, one, a, SIDE, b, SIDE, zero, c, SIDE);
    }
}
