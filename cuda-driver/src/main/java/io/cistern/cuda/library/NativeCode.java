package io.cistern.cuda.library;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// What native code and a module hand each other, for modules that have no native access of their own.
///
/// **Threads.** Any.
public final class NativeCode {
    private NativeCode() {}

    /// Returns the memory at an address, which nothing checks: that of a wrong address ends the JVM when it is
    /// read.
    @SuppressWarnings("restricted")
    public static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }

    /// Returns a C function that calls Java, for as long as the process lives.
    ///
    /// @param target throws nothing, since that would end the JVM
    @SuppressWarnings("restricted")
    public static MemorySegment function(MethodHandle target, FunctionDescriptor shape) {
        return Linker.nativeLinker().upcallStub(target, shape, Arena.global());
    }
}
