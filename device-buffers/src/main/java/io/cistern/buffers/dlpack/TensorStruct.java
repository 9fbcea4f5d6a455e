package io.cistern.buffers.dlpack;

import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// A managed tensor in memory. Both forms hold a `DLTensor`.
///
/// ```
/// DLTensor                  data 0 · device_type 8 (int) · device_id 12 (int) · ndim 16 (int)
///                           dtype 20: code 20 (byte), bits 21 (byte), lanes 22 (short)
///                           shape 24 · strides 32 · byte_offset 40; 48 bytes
/// DLManagedTensorVersioned  major 0 (int) · minor 4 (int) · manager_ctx 8 · deleter 16 · flags 24
///                           DLTensor 32; 80 bytes
/// DLManagedTensor           DLTensor 0 · manager_ctx 48 · deleter 56; 64 bytes
/// ```
///
/// @param memory the whole struct
/// @param versioned whether it is a `DLManagedTensorVersioned`
record TensorStruct(MemorySegment memory, boolean versioned) {
    static final int MAJOR = 1;
    static final int MINOR = 0;

    static final long DATA = 0;
    static final long DEVICE_TYPE = 8;
    static final long DEVICE_ID = 12;
    static final long RANK = 16;
    static final long TYPE_CODE = 20;
    static final long TYPE_BITS = 21;
    static final long TYPE_LANES = 22;
    static final long SHAPE = 24;
    static final long STRIDES = 32;
    static final long BYTE_OFFSET = 40;

    private static final long MINOR_AT = 4;
    private static final long FLAGS = 24;

    /// Returns the struct at an address.
    static TensorStruct at(long address, boolean versioned) {
        return new TensorStruct(NativeCode.memory(address, byteSize(versioned)), versioned);
    }

    static long byteSize(boolean versioned) {
        return versioned ? 80 : 64;
    }

    /// Returns the offset of its `DLTensor`.
    long tensor() {
        return versioned ? 32 : 0;
    }

    /// Returns the offset of the deleter's address.
    private long deleterAt() {
        return versioned ? 16 : 56;
    }

    long deleter() {
        return memory.get(ValueLayout.JAVA_LONG, deleterAt());
    }

    long flags() {
        return versioned ? memory.get(ValueLayout.JAVA_LONG, FLAGS) : 0;
    }

    int major() {
        return versioned ? memory.get(ValueLayout.JAVA_INT, 0) : MAJOR;
    }

    int minor() {
        return versioned ? memory.get(ValueLayout.JAVA_INT, MINOR_AT) : MINOR;
    }

    int getInt(long field) {
        return memory.get(ValueLayout.JAVA_INT, tensor() + field);
    }

    long getLong(long field) {
        return memory.get(ValueLayout.JAVA_LONG, tensor() + field);
    }

    TensorType type() {
        return new TensorType(
                Byte.toUnsignedInt(memory.get(ValueLayout.JAVA_BYTE, tensor() + TYPE_CODE)),
                Byte.toUnsignedInt(memory.get(ValueLayout.JAVA_BYTE, tensor() + TYPE_BITS)),
                Short.toUnsignedInt(memory.get(ValueLayout.JAVA_SHORT, tensor() + TYPE_LANES)));
    }

    void setManager(long deleter, long flags) {
        memory.set(ValueLayout.JAVA_LONG, deleterAt(), deleter);
        if (versioned) {
            memory.set(ValueLayout.JAVA_INT, 0, MAJOR);
            memory.set(ValueLayout.JAVA_INT, MINOR_AT, MINOR);
            memory.set(ValueLayout.JAVA_LONG, FLAGS, flags);
        }
    }

    void setInt(long field, int value) {
        memory.set(ValueLayout.JAVA_INT, tensor() + field, value);
    }

    void setLong(long field, long value) {
        memory.set(ValueLayout.JAVA_LONG, tensor() + field, value);
    }

    void setType(TensorType type) {
        memory.set(ValueLayout.JAVA_BYTE, tensor() + TYPE_CODE, (byte) type.code());
        memory.set(ValueLayout.JAVA_BYTE, tensor() + TYPE_BITS, (byte) type.bits());
        memory.set(ValueLayout.JAVA_SHORT, tensor() + TYPE_LANES, (short) type.lanes());
    }
}
