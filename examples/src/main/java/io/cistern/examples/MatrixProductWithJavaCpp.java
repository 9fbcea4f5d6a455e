package io.cistern.examples;

import static org.bytedeco.cuda.global.cublas.CUBLAS_OP_N;
import static org.bytedeco.cuda.global.cublas.cublasSgemm_v2;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyAsync;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyDeviceToHost;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyHostToDevice;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.javacpp.CudaLibraries;
import io.cistern.javacpp.DevicePointer;
import io.cistern.javacpp.JavaCppStreams;
import java.util.Arrays;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.FloatPointer;

/// Multiplies matrices in two Cistern blocks by cuBLAS, called through JavaCPP's presets with a pooled handle.
///
/// Without the presets' native libraries, or CUDA's libraries, it prints why.
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-javacpp`,
/// and the native libraries that docs/javacpp.md names.
public final class MatrixProductWithJavaCpp {
    private static final int SIDE = 256;

    private MatrixProductWithJavaCpp() {}

    /// Prints one element of the product of two matrices of twos.
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
        if (memory.driver().simulated()) {
            System.out.println("no product: it needs a GPU");
            return;
        }
        try {
            multiply(memory, CudaLibraries.cublas(memory));
        } catch (UnsupportedOperationException absent) {
            System.out.println("no product: " + absent.getMessage());
        }
    }

    private static void multiply(DeviceMemory memory, HandleLibrary<cublasContext> cublas) {
        float[] values = new float[SIDE * SIDE];
        Arrays.fill(values, 2);
        long byteSize = 4L * values.length;
        try (HandlePool<cublasContext> pool = HandlePool.open(memory, cublas);
                CudaStream stream = CudaStream.open(memory, 0);
                DevicePointer a = DevicePointer.allocate(byteSize, stream);
                DevicePointer c = DevicePointer.allocate(byteSize, stream);
                FloatPointer host = new FloatPointer(values);
                FloatPointer one = new FloatPointer(1f);
                FloatPointer zero = new FloatPointer(0f)) {
            CUstream_st preset = JavaCppStreams.of(stream);
            check(cudaMemcpyAsync(a, host, byteSize, cudaMemcpyHostToDevice, preset));
            check(cublasSgemm_v2(
                    pool.handle(0, stream.handle()),
                    CUBLAS_OP_N,
                    CUBLAS_OP_N,
                    SIDE,
                    SIDE,
                    SIDE,
                    one,
                    new FloatPointer(a),
                    SIDE,
                    new FloatPointer(a),
                    SIDE,
                    zero,
                    new FloatPointer(c),
                    SIDE));
            check(cudaMemcpyAsync(host, c, byteSize, cudaMemcpyDeviceToHost, preset));
            stream.synchronize();
            System.out.println("each element is " + host.get(0));
        }
    }

    private static void check(int status) {
        if (status != 0) {
            throw new IllegalStateException("status " + status);
        }
    }
}
