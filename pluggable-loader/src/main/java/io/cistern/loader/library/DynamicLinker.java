package io.cistern.loader.library;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// Calls `dlopen`, `dlsym` and `dlerror`. Java's own lookup binds symbols when they are first called, so that a
/// missing one ends the process, and it does not say why a library can't be loaded.
final class DynamicLinker {
    private static final int RTLD_NOW = 2;
    private static final int RTLD_GLOBAL = 0x100;
    private static final long MAX_MESSAGE = 4096;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final MethodHandle OPEN = function(
            "dlopen", FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));
    private static final MethodHandle SYMBOL = function(
            "dlsym", FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
    private static final MethodHandle ERROR = function("dlerror", FunctionDescriptor.of(ValueLayout.JAVA_LONG));

    private DynamicLinker() {}

    @SuppressWarnings("restricted")
    private static MethodHandle function(String name, FunctionDescriptor shape) {
        return LINKER.downcallHandle(LINKER.defaultLookup().findOrThrow(name), shape);
    }

    /// Loads a library with all symbols bound. It stays loaded, because native code that has run in a process
    /// can't be taken back.
    ///
    /// @param forOthers whether libraries loaded later see its symbols
    /// @return its handle
    /// @throws DynamicLinkException if it can't be loaded
    static long open(String path, boolean forOthers) throws DynamicLinkException {
        try (Arena arena = Arena.ofConfined()) {
            long name = arena.allocateFrom(path).address();
            long handle = (long) OPEN.invokeExact(name, forOthers ? RTLD_NOW | RTLD_GLOBAL : RTLD_NOW);
            if (handle == 0) {
                throw new DynamicLinkException(error());
            }
            return handle;
        } catch (Throwable e) {
            throw DynamicLinkException.of(e);
        }
    }

    /// Returns the address of a symbol, or 0 if the library does not have it.
    static long symbol(long handle, String name) {
        try (Arena arena = Arena.ofConfined()) {
            return (long) SYMBOL.invokeExact(handle, arena.allocateFrom(name).address());
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    @SuppressWarnings("restricted")
    private static String error() throws Throwable {
        long message = (long) ERROR.invokeExact();
        return message == 0
                ? "no reason given"
                : MemorySegment.ofAddress(message).reinterpret(MAX_MESSAGE).getString(0);
    }

    /// Carries the dynamic linker's message.
    static final class DynamicLinkException extends Exception {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        DynamicLinkException(String message) {
            super(message);
        }

        static DynamicLinkException of(Throwable thrown) {
            return thrown instanceof DynamicLinkException told
                    ? told
                    : new DynamicLinkException(String.valueOf(thrown));
        }
    }
}
