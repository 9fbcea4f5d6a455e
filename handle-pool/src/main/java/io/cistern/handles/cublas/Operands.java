package io.cistern.handles.cublas;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;

/// Checks the buffers of a call before the library sees their addresses.
final class Operands {
    private Operands() {}

    static void check(DeviceMemory memory, Gemm gemm, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c) {
        check(memory, gemm, gemm.elementsA(), a, gemm.elementsB(), b, gemm.elementsC(), c);
    }

    static void check(DeviceMemory memory, GemmBatch batch, DeviceBuffer a, DeviceBuffer b, DeviceBuffer c) {
        check(memory, batch.gemm(), batch.elementsA(), a, batch.elementsB(), b, batch.elementsC(), c);
    }

    private static void check(
            DeviceMemory memory,
            Gemm gemm,
            long elementsA,
            DeviceBuffer a,
            long elementsB,
            DeviceBuffer b,
            long elementsC,
            DeviceBuffer c) {
        int device = c.device();
        check(memory, device, "A", a, elementsA, gemm);
        check(memory, device, "B", b, elementsB, gemm);
        check(memory, device, "C", c, elementsC, gemm);
        long bytesC = elementsC * gemm.type().byteSize();
        requireApart("A", a, elementsA * gemm.type().byteSize(), c, bytesC);
        requireApart("B", b, elementsB * gemm.type().byteSize(), c, bytesC);
    }

    static void checkBias(DeviceMemory memory, Gemm gemm, DeviceBuffer bias, DeviceBuffer c) {
        check(memory, c.device(), "the bias", bias, gemm.m(), gemm);
        long bytesC = gemm.elementsC() * gemm.type().byteSize();
        requireApart("the bias", bias, (long) gemm.m() * gemm.type().byteSize(), c, bytesC);
    }

    private static void check(
            DeviceMemory memory, int device, String name, DeviceBuffer buffer, long elements, Gemm gemm) {
        ElementType type = gemm.type();
        if (buffer.byteSize() / type.byteSize() < elements) {
            throw illegal(name, buffer, "has to have " + elements + " elements of " + type, gemm);
        }
        if (buffer.device() != device) {
            throw illegal(name, buffer, "lies on another device than C", gemm);
        }
        if (buffer.memory() != memory) {
            throw illegal(name, buffer, "belongs to another device memory", gemm);
        }
        if (buffer.address() % type.byteSize() != 0) {
            throw illegal(name, buffer, "begins at no multiple of " + type.byteSize() + " bytes", gemm);
        }
    }

    private static void requireApart(String name, DeviceBuffer read, long readBytes, DeviceBuffer c, long bytesC) {
        long from = read.address();
        long to = c.address();
        if (from < to + bytesC && to < from + readBytes) {
            throw new IllegalArgumentException(name + ", " + read + ", overlaps C, " + c + ": give C another buffer");
        }
    }

    private static IllegalArgumentException illegal(String name, DeviceBuffer buffer, String why, Gemm gemm) {
        return new IllegalArgumentException(name + ", " + buffer + ", " + why + " for " + gemm);
    }

    /// Returns the address of a buffer, which keeps its memory until a stream has passed the call.
    static long use(DeviceBuffer buffer, long stream) {
        long address = buffer.address();
        if (buffer.stream() != stream) {
            buffer.recordUse(stream);
        }
        return address;
    }
}
