package io.cistern.jcuda;

import java.lang.invoke.VarHandle;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;

/// Reads a pointer of JCuda through its protected members, and writes it as JCuda's native code does.
final class PointerParts extends Pointer {
    private static final VarHandle OFFSET = HandleField.bind(Pointer.class, "byteOffset");

    private PointerParts(Pointer pointer) {
        super(pointer);
    }

    /// Returns whether a pointer has a lasting address. A pointer to a Java array or buffer has one once a function
    /// has allocated memory for it.
    static boolean hasAddress(Pointer pointer) {
        HandleField.require(pointer, "pointer");
        return pointer instanceof CUdeviceptr
                || new PointerParts(pointer).getNativePointer() != 0
                || !isToJavaObject(pointer);
    }

    /// Sets the pointer's address, and its offset to 0.
    static void set(Pointer pointer, long address) {
        HandleField.set(pointer, address);
        OFFSET.set(pointer, 0L);
    }

    /// Sets a pointer to null before memory is allocated for it, so that a failure leaves no address which the program
    /// could free.
    ///
    /// @throws NullPointerException if there is no pointer
    static void clear(Pointer pointer) {
        HandleField.require(pointer, "pointer");
        set(pointer, 0);
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
