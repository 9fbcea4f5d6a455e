package io.cistern.cuda.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.List;

/// A driver library compiled from `fake_cuda.c`, and the functions by which a test looks into it.
@SuppressWarnings("restricted")
final class FakeLibrary {
    private final Path path;
    private final SymbolLookup symbols;

    /// @param options of the compiler, such as `-DDEVICES=0`
    FakeLibrary(Path folder, String... options) {
        path = NativeCompiler.sharedLibrary(folder, source(), options);
        symbols = SymbolLookup.libraryLookup(path, Arena.global());
    }

    private static Path source() {
        try {
            return Path.of(FakeLibrary.class.getResource("/fake_cuda.c").toURI());
        } catch (URISyntaxException e) {
            throw new AssertionError(e);
        }
    }

    Path path() {
        return path;
    }

    NativeDriver open() {
        try {
            return new NativeDriver(Startup.of(DriverLibrary.load(path.toString())));
        } catch (UnavailableException e) {
            throw new AssertionError(e.reason(), e);
        }
    }

    /// Forgets what was recorded and records from now on, or no more.
    void record(boolean on) {
        callVoid("fake_record", on ? 1 : 0);
    }

    /// Each call since recording began: `[current context] name(arguments)`, numbers in hexadecimal.
    List<String> calls() {
        try {
            MethodHandle handle = handle("fake_text", FunctionDescriptor.of(ValueLayout.ADDRESS));
            String text =
                    ((MemorySegment) handle.invokeExact()).reinterpret(1 << 20).getString(0);
            return text.lines().toList();
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// As [#calls], without the reading of the current context and without what it was.
    List<String> callsWithoutContexts() {
        return calls().stream()
                .filter(call -> !call.contains("cuCtxGetCurrent") && !call.contains("cuCtxSetCurrent"))
                .map(call -> call.substring(call.indexOf(' ') + 1))
                .toList();
    }

    /// Lets a function fail from now on, or none if the code is 0.
    void fail(String name, int code) {
        try (Arena arena = Arena.ofConfined()) {
            handle("fake_fail", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_INT))
                    .invokeExact(arena.allocateFrom(name), code);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// Sets what most attributes of devices are.
    void attributes(int value) {
        callVoid("fake_attributes", value);
    }

    /// Whether pairs of pools want a primary context to be current.
    void strict(boolean on) {
        callVoid("fake_strict", on ? 1 : 0);
    }

    /// Lets waits for the stream 0xb10c return, or not.
    void gate(boolean open) {
        callVoid("fake_gate", open ? 1 : 0);
    }

    /// Calls the destructor of the user object that was made last.
    void destroyObject() {
        try {
            handle("fake_destroy_object", FunctionDescriptor.ofVoid()).invokeExact();
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// Makes a context current on this thread, behind the driver's back.
    void setContext(long context) {
        try {
            handle("fake_set_context", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG))
                    .invokeExact(context);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// What is current on this thread.
    long context() {
        try {
            return (long) handle("fake_context", FunctionDescriptor.of(ValueLayout.JAVA_LONG))
                    .invokeExact();
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// How often a device's primary context is retained.
    int retained(int device) {
        try {
            return (int) handle("fake_retained", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT))
                    .invokeExact(device);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private void callVoid(String name, int value) {
        try {
            handle(name, FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT)).invokeExact(value);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private MethodHandle handle(String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), descriptor);
    }
}
