package io.cistern.jcuda;

import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;

/// Reads a pointer of JCuda through its protected members.
final class PointerParts extends Pointer {
    private PointerParts(Pointer pointer) {
        super(pointer);
    }

    /// Returns whether a pointer has a lasting address.
    static boolean hasAddress(Pointer pointer) {
        return pointer instanceof CUdeviceptr || !isToJavaObject(pointer);
    }

    /// Returns the pointer's address plus its offset.
    ///
    /// @throws IllegalArgumentException if it points to a Java array or buffer
    static long address(Pointer pointer) {
        if (!hasAddress(pointer)) {
            throw new IllegalArgumentException("a pointer to a Java array or buffer has no fixed address");
        }
        PointerParts parts = new PointerParts(pointer);
        return parts.getNativePointer() + parts.getByteOffset();
    }

    /// Returns the pointer's offset in bytes.
    static long offset(Pointer pointer) {
        return new PointerParts(pointer).getByteOffset();
    }

    /// JCuda's text form is the only way to tell. That of a pointer to pointers has theirs in it.
    private static boolean isToJavaObject(Pointer pointer) {
        String text = pointer.toString();
        return !text.startsWith("nativePointer=", text.indexOf('[') + 1);
    }
}
