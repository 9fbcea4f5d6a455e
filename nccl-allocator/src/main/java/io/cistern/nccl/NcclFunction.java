package io.cistern.nccl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.nccl.internal.call.NcclCall;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// One function of the loaded library. Each [shape][NcclCall] has one method handle, which takes the function's
/// address first. So the handles are constants to the compiler, which inlines them, while the addresses belong
/// to a library.
///
/// An `assert` checks that the shape chosen by a caller's argument types is the function's own.
final class NcclFunction {
    private static final MemoryLayout UNIQUE_ID =
            MemoryLayout.structLayout(MemoryLayout.sequenceLayout(UniqueId.BYTES, JAVA_BYTE));

    private static final MethodHandle NOTHING = handle("");
    private static final MethodHandle L = handle("L");
    private static final MethodHandle LL = handle("LL");
    private static final MethodHandle LIL = handle("LIL");
    private static final MethodHandle LIUI = handle("LIUI");
    private static final MethodHandle LLLL = handle("LLLL");
    private static final MethodHandle LLLLI = handle("LLLLI");
    private static final MethodHandle LIILL = handle("LIILL");
    private static final MethodHandle LLIILL = handle("LLIILL");
    private static final MethodHandle LLLILL = handle("LLLILL");
    private static final MethodHandle LLLIILL = handle("LLLIILL");
    private static final MethodHandle LLLIIILL = handle("LLLIIILL");
    private static final MethodHandle TEXT = SharedLibrary.call(FunctionDescriptor.of(ADDRESS, JAVA_LONG));

    private final NcclCall call;
    private final MemorySegment address;
    private final NcclLibrary library;

    /// @param address the symbol's address, or `NULL` if the library has no such symbol
    NcclFunction(NcclCall call, MemorySegment address, NcclLibrary library) {
        this.call = call;
        this.address = address;
        this.library = library;
    }

    private static MethodHandle handle(String shape) {
        MemoryLayout[] parameters = shape.chars()
                .mapToObj(c -> switch (c) {
                    case 'L' -> JAVA_LONG;
                    case 'I' -> JAVA_INT;
                    default -> UNIQUE_ID;
                })
                .toArray(MemoryLayout[]::new);
        return SharedLibrary.call(FunctionDescriptor.of(JAVA_INT, parameters));
    }

    boolean present() {
        return address.address() != 0;
    }

    int call() {
        assert has("");
        try {
            return (int) NOTHING.invokeExact(address);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a) {
        assert has("L");
        try {
            return (int) L.invokeExact(address, a);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b) {
        assert has("LL");
        try {
            return (int) LL.invokeExact(address, a, b);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, int b, long c) {
        assert has("LIL");
        try {
            return (int) LIL.invokeExact(address, a, b, c);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, int b, MemorySegment id, int d) {
        assert has("LIUI");
        try {
            return (int) LIUI.invokeExact(address, a, b, id, d);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, long c, long d) {
        assert has("LLLL");
        try {
            return (int) LLLL.invokeExact(address, a, b, c, d);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, long c, long d, int e) {
        assert has("LLLLI");
        try {
            return (int) LLLLI.invokeExact(address, a, b, c, d, e);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, int b, int c, long d, long e) {
        assert has("LIILL");
        try {
            return (int) LIILL.invokeExact(address, a, b, c, d, e);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, int c, int d, long e, long f) {
        assert has("LLIILL");
        try {
            return (int) LLIILL.invokeExact(address, a, b, c, d, e, f);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, int d, long e, long f) {
        assert has("LLLILL");
        try {
            return (int) LLLILL.invokeExact(address, a, b, c, d, e, f);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, int d, int e, long f, long g) {
        assert has("LLLIILL");
        try {
            return (int) LLLIILL.invokeExact(address, a, b, c, d, e, f, g);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, int d, int e, int f, long g, long h) {
        assert has("LLLIIILL");
        try {
            return (int) LLLIIILL.invokeExact(address, a, b, c, d, e, f, g, h);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    /// Calls a function that takes 64 bits and returns a text; returns an empty text for `NULL`.
    String text(long a) {
        try {
            return SharedLibrary.text((MemorySegment) TEXT.invokeExact(address, a));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /// Throws an exception if a call did not succeed.
    ///
    /// @param arguments the call's arguments, for people
    void check(int code, String arguments) {
        if (code != NcclResult.SUCCESS.code()) {
            throw failed(code, arguments);
        }
    }

    /// Returns the exception for a result. It asks for the last error without a communicator, which NCCL
    /// allows, because an abort may have freed the communicator.
    NcclException failed(int code, String arguments) {
        String lastError = library.function(NcclCall.GET_LAST_ERROR).text(0);
        return new NcclException(call.symbol(), code, arguments, lastError);
    }

    private boolean has(String shape) {
        return call.shape().equals(shape);
    }

    private RuntimeException notCalled(Throwable thrown) {
        if (!present()) {
            return new UnsupportedOperationException(call.symbol() + " came with NCCL "
                    + NcclLibrary.text(call.sinceVersion()) + ", and " + library.name() + " is "
                    + NcclLibrary.text(library.version()) + "; update NCCL");
        }
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException e ? e : new IllegalStateException(thrown);
    }
}
