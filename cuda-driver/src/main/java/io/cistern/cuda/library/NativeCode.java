package io.cistern.cuda.library;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// Gives native memory and functions to modules that have no native access of their own.
///
/// **Threads.** Any.
public final class NativeCode {
    private NativeCode() {}

    /// Returns the memory at an address. Nothing checks the address: access through an invalid one crashes
    /// the JVM.
    @SuppressWarnings("restricted")
    public static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }

    /// Returns the memory at an address, which can be accessed until the arena is closed.
    @SuppressWarnings("restricted")
    public static MemorySegment memory(long address, long byteSize, Arena arena) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize, arena, null);
    }

    /// Returns the exception to throw after a native call threw: the same one if it is unchecked, else one
    /// that wraps it. An [Error] is thrown at once.
    public static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException e ? e : new IllegalStateException(thrown);
    }

    /// Returns a message that native access is denied, and how to allow it.
    public static String denied() {
        Module module = NativeCode.class.getModule();
        return "native access is denied to Cistern; start java with --enable-native-access="
                + (module.isNamed() ? module.getName() : "ALL-UNNAMED");
    }

    /// Returns a C function that calls Java. It is never freed.
    ///
    /// @param target a method that throws nothing, since an exception would end the JVM
    @SuppressWarnings("restricted")
    public static MemorySegment function(MethodHandle target, FunctionDescriptor shape) {
        return Linker.nativeLinker().upcallStub(target, shape, Arena.global());
    }

    /// Loads a library. It is never unloaded.
    ///
    /// @param name its name, or a path with at least one `/`
    /// @throws IllegalArgumentException if it can't be loaded
    /// @throws IllegalCallerException if native access is denied
    @SuppressWarnings("restricted")
    public static SymbolLookup library(String name) {
        return name.contains("/")
                ? SymbolLookup.libraryLookup(Path.of(name), Arena.global())
                : SymbolLookup.libraryLookup(name, Arena.global());
    }
}
