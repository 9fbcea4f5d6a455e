package io.cistern.buffers.dlpack;

import io.cistern.CudaStream;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.library.NativeCode;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.lang.foreign.ValueLayout;

/// Reads another library's struct, and checks everything in it that can be checked.
final class ReceivedTensor {
    /// NumPy allows this many, more than any other library.
    private static final int MAX_RANK = 64;

    private ReceivedTensor() {}

    /// Returns the address of the first element.
    static long address(TensorStruct struct) {
        return struct.getLong(TensorStruct.DATA) + struct.getLong(TensorStruct.BYTE_OFFSET);
    }

    /// Checks that a device can use the tensor.
    ///
    /// @return the tensor's layout
    /// @throws SharingException if the device can't use it
    static TensorLayout check(TensorStruct struct, CudaStream stream) {
        requireVersion(struct);
        int device = stream.device();
        TensorDevice.require(struct.getInt(TensorStruct.DEVICE_TYPE), struct.getInt(TensorStruct.DEVICE_ID), device);
        TensorLayout layout = layout(struct);
        if (layout.byteSize() > 0) {
            requireMemory(struct, layout, stream.memory().driver().memory(), device);
        }
        return layout;
    }

    /// In a struct of another major version, only the deleter may be read.
    private static void requireVersion(TensorStruct struct) {
        if (struct.major() != TensorStruct.MAJOR) {
            throw new SharingException(
                    Reason.WRONG_VERSION,
                    "the tensor has version " + struct.major() + "." + struct.minor() + " of DLPack, but Cistern reads "
                            + TensorStruct.MAJOR + ".x: ask its producer for that, for example with max_version=(1,"
                            + " 0)");
        }
    }

    private static TensorLayout layout(TensorStruct struct) {
        int rank = struct.getInt(TensorStruct.RANK);
        long shape = struct.getLong(TensorStruct.SHAPE);
        if (rank < 0 || rank > MAX_RANK || (rank > 0 && shape == 0)) {
            throw malformed("it has " + rank + " dimensions, its shape is at 0x" + Long.toHexString(shape), null);
        }
        long strides = struct.getLong(TensorStruct.STRIDES);
        try {
            return strides == 0
                    ? TensorLayout.compact(struct.type(), array(shape, rank))
                    : TensorLayout.strided(struct.type(), array(shape, rank), array(strides, rank));
        } catch (IllegalArgumentException refused) {
            throw malformed(String.valueOf(refused.getMessage()), refused);
        }
    }

    private static long[] array(long address, int length) {
        return length == 0
                ? new long[0]
                : NativeCode.memory(address, (long) Long.BYTES * length).toArray(ValueLayout.JAVA_LONG);
    }

    private static void requireMemory(TensorStruct struct, TensorLayout layout, LinearMemory memory, int device) {
        long first = address(struct);
        if (first <= 0 || struct.getLong(TensorStruct.BYTE_OFFSET) < 0 || first > Long.MAX_VALUE - layout.byteSize()) {
            throw malformed("its first element is at 0x" + Long.toHexString(first), null);
        }
        if (first % layout.type().byteAlignment() != 0) {
            throw malformed("0x" + Long.toHexString(first) + " is not aligned for " + layout.type(), null);
        }
        TensorDevice.requireKnown(memory, device, first);
    }

    private static SharingException malformed(String what, @org.jspecify.annotations.Nullable Throwable cause) {
        String message = "the tensor can't be used: " + what;
        return cause == null
                ? new SharingException(Reason.MALFORMED, message)
                : new SharingException(Reason.MALFORMED, message, cause);
    }
}
