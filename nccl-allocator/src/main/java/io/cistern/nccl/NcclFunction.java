package io.cistern.nccl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.NativeCode;
import io.cistern.cuda.library.SharedLibrary;
import io.cistern.nccl.internal.call.NcclCall;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;

/// One function of the loaded library. All functions with the same number of parameters have one method handle, which
/// takes the function's address first: every parameter of 32 bits is passed as 64, as to the driver's functions. So
/// the handles are constants to the compiler, which inlines them, while the addresses belong to a library.
final class NcclFunction {
    private static final MemoryLayout UNIQUE_ID =
            MemoryLayout.structLayout(MemoryLayout.sequenceLayout(UniqueId.BYTES, JAVA_BYTE));

    private static final MethodHandle NOTHING = handle(0);
    private static final MethodHandle L = handle(1);
    private static final MethodHandle LL = handle(2);
    private static final MethodHandle LLL = handle(3);
    private static final MethodHandle LLLL = handle(4);
    private static final MethodHandle LLLLL = handle(5);
    private static final MethodHandle LLLLLL = handle(6);
    private static final MethodHandle LLLLLLL = handle(7);
    private static final MethodHandle LLLLLLLL = handle(8);
    private static final MethodHandle LLUL =
            SharedLibrary.call(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, UNIQUE_ID, JAVA_LONG));
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

    private static MethodHandle handle(int count) {
        MemoryLayout[] parameters = new MemoryLayout[count];
        Arrays.fill(parameters, JAVA_LONG);
        return SharedLibrary.call(FunctionDescriptor.of(JAVA_INT, parameters));
    }

    boolean present() {
        return address.address() != 0;
    }

    int call() {
        assert call.shape().length() == 0;
        try {
            return (int) NOTHING.invokeExact(address);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a) {
        assert call.shape().length() == 1;
        try {
            return (int) L.invokeExact(address, a);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b) {
        assert call.shape().length() == 2;
        try {
            return (int) LL.invokeExact(address, a, b);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c) {
        assert call.shape().length() == 3;
        try {
            return (int) LLL.invokeExact(address, a, b, c);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d) {
        assert call.shape().length() == 4;
        try {
            return (int) LLLL.invokeExact(address, a, b, c, d);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d, long e) {
        assert call.shape().length() == 5;
        try {
            return (int) LLLLL.invokeExact(address, a, b, c, d, e);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f) {
        assert call.shape().length() == 6;
        try {
            return (int) LLLLLL.invokeExact(address, a, b, c, d, e, f);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f, long g) {
        assert call.shape().length() == 7;
        try {
            return (int) LLLLLLL.invokeExact(address, a, b, c, d, e, f, g);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f, long g, long h) {
        assert call.shape().length() == 8;
        try {
            return (int) LLLLLLLL.invokeExact(address, a, b, c, d, e, f, g, h);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, MemorySegment id, long d) {
        assert call.shape().equals("LIUI");
        try {
            return (int) LLUL.invokeExact(address, a, b, id, d);
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
    /// @param arguments the call's arguments, for the message
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

    private RuntimeException notCalled(Throwable thrown) {
        if (!present()) {
            return new UnsupportedOperationException(call.symbol() + " came with NCCL "
                    + NcclLibrary.text(call.sinceVersion()) + ", and " + library.name() + " is "
                    + NcclLibrary.text(library.version()) + "; update NCCL");
        }
        return NativeCode.unexpected(thrown);
    }
}
