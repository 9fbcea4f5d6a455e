package io.cistern.jcuda;

import jcuda.Pointer;

/// Reads a pointer of JCuda, through the protected members that it has for subclasses.
final class PointerParts extends Pointer {
    private PointerParts(Pointer pointer) {
        super(pointer);
    }

    /// Address and offset.
    ///
    /// @throws IllegalArgumentException if it points to a Java array or buffer
    static long address(Pointer pointer) {
        PointerParts parts = new PointerParts(pointer);
        if (parts.getNativePointer() == 0 && pointer.getByteBuffer() != null) {
            throw new IllegalArgumentException("a pointer to an array or buffer of Java has no lasting address");
        }
        return parts.getNativePointer() + parts.getByteOffset();
    }
}
