package io.cistern.suites.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.handles.cublas.ElementType;
import io.cistern.handles.cublas.Epilogue;
import io.cistern.handles.cublas.Gemm;
import java.util.Random;

/// Holds the matrices of a product on the host and on a device, and computes the result in Java.
final class HostProduct implements AutoCloseable {
    private final Gemm gemm;
    private final double[] hostA;
    private final double[] hostB;
    private final double[] hostC;
    private final double[] hostBias;
    final DeviceBuffer a;
    final DeviceBuffer b;
    final DeviceBuffer c;
    final DeviceBuffer bias;

    /// @param stream the stream of the buffers
    HostProduct(Gemm gemm, Random random, DeviceMemory memory, int device, long stream) {
        this.gemm = gemm;
        hostA = Elements.random(random, (long) gemm.lda() * (gemm.transposeA() ? gemm.m() : gemm.k()));
        hostB = Elements.random(random, (long) gemm.ldb() * (gemm.transposeB() ? gemm.k() : gemm.n()));
        hostC = Elements.random(random, (long) gemm.ldc() * gemm.n());
        hostBias = Elements.random(random, gemm.m());
        a = toDevice(hostA, memory, device, stream);
        b = toDevice(hostB, memory, device, stream);
        c = toDevice(hostC, memory, device, stream);
        bias = toDevice(hostBias, memory, device, stream);
    }

    private DeviceBuffer toDevice(double[] values, DeviceMemory memory, int device, long stream) {
        ElementType type = gemm.type();
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, (long) values.length * type.byteSize(), device, stream);
        buffer.copyFrom(Elements.toBytes(type, values));
        return buffer;
    }

    /// Compares C with the expected result, and checks that the gaps between columns are unchanged.
    void assertComputed(Epilogue epilogue) {
        double[] result = Elements.read(gemm.type(), c, hostC.length);
        for (int column = 0; column < gemm.n(); column++) {
            for (int row = 0; row < gemm.ldc(); row++) {
                int at = row + column * gemm.ldc();
                double expected = row < gemm.m() ? expected(row, column, epilogue) : hostC[at];
                double tolerance = Elements.tolerance(gemm.type()) * Math.max(1, Math.abs(expected));
                assertThat(result[at])
                        .as("row %d, column %d of %s", row, column, gemm)
                        .isCloseTo(expected, within(epilogue.name().startsWith("GELU") ? 2 * tolerance : tolerance));
            }
        }
    }

    private double expected(int row, int column, Epilogue epilogue) {
        double sum = 0;
        for (int i = 0; i < gemm.k(); i++) {
            double left = gemm.transposeA() ? hostA[i + row * gemm.lda()] : hostA[row + i * gemm.lda()];
            double right = gemm.transposeB() ? hostB[column + i * gemm.ldb()] : hostB[i + column * gemm.ldb()];
            sum += left * right;
        }
        double scaled = gemm.alpha() * sum + gemm.beta() * hostC[row + column * gemm.ldc()];
        double value = epilogue.hasBias() ? scaled + hostBias[row] : scaled;
        return switch (epilogue) {
            case NONE, BIAS -> value;
            case RELU, RELU_BIAS -> Math.max(0, value);
            case GELU, GELU_BIAS ->
                value / 2 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (value + 0.044715 * value * value * value)));
        };
    }

    @Override
    public void close() {
        a.close();
        b.close();
        c.close();
        bias.close();
    }
}
