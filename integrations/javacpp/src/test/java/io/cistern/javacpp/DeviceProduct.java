package io.cistern.javacpp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.bytedeco.cuda.global.cublas.CUBLAS_OP_N;
import static org.bytedeco.cuda.global.cublas.CUBLAS_OP_T;
import static org.bytedeco.cuda.global.cublas.cublasSgemm_v2;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyAsync;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyDeviceToHost;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyHostToDevice;
import static org.bytedeco.cuda.global.cudart.cudaStreamSynchronize;

import io.cistern.DeviceMemory;
import java.util.Random;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;

/// The matrices of a product C = α·A·B + β·C, column by column, on the host and in blocks of a device, whose result is
/// compared with one that Java computes.
final class DeviceProduct implements AutoCloseable {
    /// @param rows that a column of each matrix has more than the matrix
    record Shape(int m, int n, int k, boolean transposeA, boolean transposeB, float alpha, float beta, int rows) {
        static Shape of(int m, int n, int k) {
            return new Shape(m, n, k, false, false, 1, 0, 0);
        }

        int lda() {
            return (transposeA ? k : m) + rows;
        }

        int ldb() {
            return (transposeB ? n : k) + rows;
        }

        int ldc() {
            return m + rows;
        }
    }

    private final Shape shape;
    private final CUstream_st stream;
    private final float[] hostA;
    private final float[] hostB;
    private final float[] hostC;
    final DevicePointer a;
    final DevicePointer b;
    final DevicePointer c;

    DeviceProduct(Shape shape, Random random, DeviceMemory memory, int device, long stream) {
        this.shape = shape;
        this.stream = new CUstream_st(DevicePointer.of(stream, 0));
        hostA = eighths(random, shape.lda() * (shape.transposeA ? shape.m : shape.k));
        hostB = eighths(random, shape.ldb() * (shape.transposeB ? shape.k : shape.n));
        hostC = eighths(random, shape.ldc() * shape.n);
        a = DevicePointer.allocate(memory, 4L * hostA.length, device, stream);
        b = DevicePointer.allocate(memory, 4L * hostB.length, device, stream);
        c = DevicePointer.allocate(memory, 4L * hostC.length, device, stream);
        send(a, hostA);
        send(b, hostB);
        send(c, hostC);
    }

    /// Random eighths from -2 to 2, so that sums are exact.
    private static float[] eighths(Random random, int count) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
            values[i] = (random.nextInt(33) - 16) / 8f;
        }
        return values;
    }

    private void send(Pointer target, float[] values) {
        try (FloatPointer host = new FloatPointer(values)) {
            check(cudaMemcpyAsync(target, host, 4L * values.length, cudaMemcpyHostToDevice, stream));
            check(cudaStreamSynchronize(stream));
        }
    }

    private float[] received() {
        float[] values = new float[hostC.length];
        try (FloatPointer host = new FloatPointer((long) values.length)) {
            check(cudaMemcpyAsync(host, c, 4L * values.length, cudaMemcpyDeviceToHost, stream));
            check(cudaStreamSynchronize(stream));
            host.get(values);
        }
        return values;
    }

    static void check(int result) {
        assertThat(result).as("a status of CUDA").isZero();
    }

    /// Has cuBLAS multiply.
    void multiply(cublasContext handle) {
        check(multiply(handle, shape.ldc()));
    }

    int multiply(cublasContext handle, int ldc) {
        try (FloatPointer alpha = new FloatPointer(shape.alpha);
                FloatPointer beta = new FloatPointer(shape.beta)) {
            return cublasSgemm_v2(
                    handle,
                    shape.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N,
                    shape.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N,
                    shape.m,
                    shape.n,
                    shape.k,
                    alpha,
                    new FloatPointer(a),
                    shape.lda(),
                    new FloatPointer(b),
                    shape.ldb(),
                    beta,
                    new FloatPointer(c),
                    ldc);
        }
    }

    /// Compares C with the expected result, and checks that what lies between columns is unchanged.
    void assertComputed() {
        float[] result = received();
        for (int column = 0; column < shape.n; column++) {
            for (int row = 0; row < shape.ldc(); row++) {
                int at = row + column * shape.ldc();
                double expected = row < shape.m ? expected(row, column) : hostC[at];
                assertThat((double) result[at])
                        .as("row %d, column %d of %s", row, column, shape)
                        .isCloseTo(expected, within(1e-5 * Math.max(1, Math.abs(expected))));
            }
        }
    }

    private double expected(int row, int column) {
        double sum = 0;
        for (int i = 0; i < shape.k; i++) {
            double left = shape.transposeA ? hostA[i + row * shape.lda()] : hostA[row + i * shape.lda()];
            double right = shape.transposeB ? hostB[column + i * shape.ldb()] : hostB[i + column * shape.ldb()];
            sum += left * right;
        }
        return shape.alpha * sum + shape.beta * hostC[row + column * shape.ldc()];
    }

    @Override
    public void close() {
        a.close();
        b.close();
        c.close();
    }
}
