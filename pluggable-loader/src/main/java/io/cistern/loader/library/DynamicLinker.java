package io.cistern.loader.library;

import io.cistern.cuda.library.NativeCode;
import io.cistern.errors.ConfigurationException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
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

    /// Loads a library with all symbols bound. It stays loaded, because the effects of native code that has
    /// run can't be undone.
    static long open(String path, String name, boolean forOthers) {
        try (Arena arena = Arena.ofConfined()) {
            long text = arena.allocateFrom(path).address();
            long handle = (long) OPEN.invokeExact(text, forOthers ? RTLD_NOW | RTLD_GLOBAL : RTLD_NOW);
            if (handle == 0) {
                throw new ConfigurationException("library " + name + " can't be loaded: " + error());
            }
            return handle;
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    static long symbol(long handle, String name) {
        try (Arena arena = Arena.ofConfined()) {
            return (long) SYMBOL.invokeExact(handle, arena.allocateFrom(name).address());
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    private static String error() throws Throwable {
        long message = (long) ERROR.invokeExact();
        return message == 0
                ? "no reason given"
                : NativeCode.memory(message, MAX_MESSAGE).getString(0);
    }
}
