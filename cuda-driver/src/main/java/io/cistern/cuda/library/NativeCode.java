package io.cistern.cuda.library;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// Gives native memory and functions to modules that have no native access of their own.
///
/// **Threads.** Any.
public final class NativeCode {
    private NativeCode() {}

    /// Returns the memory at an address. Nothing checks the address: reading at a wrong one ends the JVM.
    @SuppressWarnings("restricted")
    public static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }

    /// Returns the memory at an address, which can be accessed until an arena ends.
    @SuppressWarnings("restricted")
    public static MemorySegment memory(long address, long byteSize, Arena arena) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize, arena, null);
    }

    /// Returns a C function that calls Java; it exists as long as the process lives.
    ///
    /// @param target a method that throws nothing, since an exception would end the JVM
    @SuppressWarnings("restricted")
    public static MemorySegment function(MethodHandle target, FunctionDescriptor shape) {
        return Linker.nativeLinker().upcallStub(target, shape, Arena.global());
    }
}
