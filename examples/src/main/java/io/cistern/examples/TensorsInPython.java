package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.dlpack.Dlpack;
import io.cistern.buffers.dlpack.DlpackTensor;
import io.cistern.buffers.dlpack.TensorLayout;
import io.cistern.buffers.dlpack.TensorType;
import java.lang.foreign.ValueLayout;

/// Shares buffers as tensors with another library in the process, and takes tensors back, without a copy.
///
/// A Python program that started a JVM in its own process calls the static methods, as
/// `tools/benchmarks/peers/dlpack_in_python.py` does for PyTorch and CuPy.
public final class TensorsInPython {
    private static final DeviceMemory MEMORY = DeviceMemory.system();
    private static final CudaStream STREAM = CudaStream.open(MEMORY, 0);

    /// Fills before the last one, so that a reader that does not wait for the stream sees other values.
    private static final int EARLIER_FILLS = 20;

    private TensorsInPython() {}

    /// Shares a tensor with this program itself, instead of Python.
    public static void main(String[] arguments) {
        long tensor = share(1000, 3, 1, 1);
        System.out.println("shared: " + bytes() + " bytes");
        System.out.println("the sum is " + sum(tensor, 1));
        System.out.println("taken and closed: " + bytes() + " bytes");
    }

    /// Makes a tensor of `count` floats that all equal `value`. It gives up the buffer: the tensor's
    /// deleter frees it.
    ///
    /// @param consumer the consumer's stream, by its number in `__dlpack__`
    /// @param versioned 0 for the form before DLPack 1.0
    /// @return the address of the tensor
    public static long share(long count, long value, long consumer, long versioned) {
        try (DeviceBuffer buffer = DeviceBuffer.allocate(4 * count, STREAM)) {
            for (int i = 0; i < EARLIER_FILLS; i++) {
                buffer.fillWords(Float.floatToRawIntBits(-i));
            }
            buffer.fillWords(Float.floatToRawIntBits((float) value));
            TensorLayout layout = TensorLayout.compact(TensorType.FLOAT32, count);
            return versioned != 0
                    ? Dlpack.share(buffer, layout, consumer)
                    : Dlpack.shareUnversioned(buffer, layout, consumer);
        }
    }

    /// Takes a tensor of floats whose producer was given [#stream], adds it up, and gives it back.
    public static long sum(long tensor, long versioned) {
        try (DlpackTensor taken =
                versioned != 0 ? Dlpack.take(tensor, STREAM) : Dlpack.takeUnversioned(tensor, STREAM)) {
            double sum = 0;
            for (float value : taken.buffer().elements(ValueLayout.JAVA_FLOAT).toFloats()) {
                sum += value;
            }
            return (long) sum;
        }
    }

    /// Takes a tensor of floats, sets all of it to a value, and gives it back without waiting.
    ///
    /// @param producer the stream on which its producer continues
    public static long fill(long tensor, long value, long producer) {
        DlpackTensor taken = Dlpack.take(tensor, STREAM);
        for (int i = 0; i < EARLIER_FILLS; i++) {
            taken.buffer().fillWords(Float.floatToRawIntBits(-i));
        }
        taken.buffer().fillWords(Float.floatToRawIntBits((float) value));
        taken.closeBefore(CudaStream.ofForeign(MEMORY, 0, producer));
        return 0;
    }

    /// Returns the number of the stream to give to a producer.
    public static long stream() {
        return Dlpack.streamNumber(STREAM);
    }

    /// Returns the live bytes.
    public static long bytes() {
        return MEMORY.statistics(0).requestedBytes();
    }
}
