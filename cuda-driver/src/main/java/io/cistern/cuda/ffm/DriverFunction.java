package io.cistern.cuda.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules;
import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// One function of the loaded library; counts its calls and checks its results.
///
/// A *shape* spells a C prototype by the width of its parameters: `L` for 64 bits (pointers, handles, sizes),
/// `I` for 32 (`int`, `unsigned`, enums), `H` for a handle of 64 bytes passed by value. The tests compare
/// it with `cuda.h`.
///
/// A 32-bit parameter is passed as 64 bits: on the supported machines each parameter has its own register
/// or 8 bytes of stack, and C reads the lower half. All functions return an `int`, so one method handle
/// serves all functions with the same number of parameters. It takes the function's address as its first
/// argument. The handles are constants, so the compiler inlines them. The addresses are not: a second
/// library may be loaded.
final class DriverFunction {
    private static final MethodHandle NOTHING = handle(0);
    private static final MethodHandle L = handle(1);
    private static final MethodHandle LL = handle(2);
    private static final MethodHandle LLL = handle(3);
    private static final MethodHandle LLLL = handle(4);
    private static final MethodHandle LLLLL = handle(5);
    private static final MethodHandle LLLLLL = handle(6);
    private static final MethodHandle LLLLLLL = handle(7);
    private static final MethodHandle LLLLLLLL = handle(8);
    private static final MethodHandle LAUNCH = handle(11);
    private static final MethodHandle LH = handle(FunctionDescriptor.of(JAVA_INT, JAVA_LONG, Structs.HANDLE));

    /// Omits the thread-state transition, which costs more than reading the current context.
    private static final MethodHandle CRITICAL_L = handle(1, Linker.Option.critical(false));

    /// See [io.cistern.cuda.Copies#arrayToDevice].
    private static final class WithArray {
        static final MethodHandle LLLL = handle(
                FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG),
                Linker.Option.critical(true));
    }

    /// The addresses of functions in the library that was bound first.
    private static final Map<DriverCall, MemorySegment> FIRST = new ConcurrentHashMap<>();

    /// The addresses of the functions that allocate and free. The compiler knows that a constant segment is
    /// never freed, so unlike a field it needs no liveness check before a call. A process hardly ever has
    /// two libraries.
    private static final class Pair {
        static final MemorySegment ALLOCATE =
                FIRST.getOrDefault(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC, MemorySegment.NULL);
        static final MemorySegment FREE = FIRST.getOrDefault(DriverCall.MEM_FREE_ASYNC, MemorySegment.NULL);
    }

    private final DriverCall call;
    private final String shape;
    private final MemorySegment address;
    private final CallCounts counts;

    /// Whether the address is the one in [Pair].
    private final boolean inPair;

    /// @param address the symbol's address, or `NULL` if the library has no such symbol
    DriverFunction(DriverCall call, String shape, MemorySegment address, CallCounts counts) {
        this.call = call;
        this.shape = shape;
        this.address = address;
        this.counts = counts;
        MemorySegment first = FIRST.computeIfAbsent(call, _ -> address);
        this.inPair = (call == DriverCall.MEM_ALLOC_FROM_POOL_ASYNC || call == DriverCall.MEM_FREE_ASYNC)
                && first.address() == address.address();
    }

    private static MethodHandle handle(int count, Linker.Option... options) {
        MemoryLayout[] parameters = new MemoryLayout[count];
        Arrays.fill(parameters, JAVA_LONG);
        return handle(FunctionDescriptor.of(JAVA_INT, parameters), options);
    }

    @SuppressWarnings("restricted")
    private static MethodHandle handle(FunctionDescriptor prototype, Linker.Option... options) {
        return Linker.nativeLinker().downcallHandle(prototype, options);
    }

    private boolean takes(int count) {
        return shape.length() == count && !shape.contains("H");
    }

    String shape() {
        return shape;
    }

    boolean present() {
        return address.address() != 0;
    }

    // Each call is counted in its frame, which is cheap, and before it is made, so that nothing for the
    // count stays on the stack during the call.
    int call(Frame frame) {
        assert takes(0) : this;
        try {
            frame.count(counts, call);
            return (int) NOTHING.invokeExact(address);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a) {
        assert takes(1) : this;
        try {
            frame.count(counts, call);
            return (int) L.invokeExact(address, a);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b) {
        assert takes(2) : this;
        try {
            frame.count(counts, call);
            return inPair ? (int) LL.invokeExact(Pair.FREE, a, b) : (int) LL.invokeExact(address, a, b);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b, long c) {
        assert takes(3) : this;
        try {
            frame.count(counts, call);
            return (int) LLL.invokeExact(address, a, b, c);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b, long c, long d) {
        assert takes(4) : this;
        try {
            frame.count(counts, call);
            return inPair
                    ? (int) LLLL.invokeExact(Pair.ALLOCATE, a, b, c, d)
                    : (int) LLLL.invokeExact(address, a, b, c, d);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b, long c, long d, long e) {
        assert takes(5) : this;
        try {
            frame.count(counts, call);
            return (int) LLLLL.invokeExact(address, a, b, c, d, e);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b, long c, long d, long e, long f) {
        assert takes(6) : this;
        try {
            frame.count(counts, call);
            return (int) LLLLLL.invokeExact(address, a, b, c, d, e, f);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b, long c, long d, long e, long f, long g) {
        assert takes(7) : this;
        try {
            frame.count(counts, call);
            return (int) LLLLLLL.invokeExact(address, a, b, c, d, e, f, g);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b, long c, long d, long e, long f, long g, long h) {
        assert takes(8) : this;
        try {
            frame.count(counts, call);
            return (int) LLLLLLLL.invokeExact(address, a, b, c, d, e, f, g, h);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    /// @param handle a segment as long as [Structs#HANDLE]
    int call(Frame frame, long a, MemorySegment handle) {
        assert shape.equals("LH") : this;
        try {
            frame.count(counts, call);
            return (int) LH.invokeExact(address, a, handle);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int launch(Frame frame, long function, Modules.Grid grid, long stream, long parameters) {
        assert takes(11) : this;
        Modules.Extent blocks = grid.blocks();
        Modules.Extent threads = grid.threads();
        try {
            frame.count(counts, call);
            return (int) LAUNCH.invokeExact(
                    address,
                    function,
                    (long) blocks.x(),
                    (long) blocks.y(),
                    (long) blocks.z(),
                    (long) threads.x(),
                    (long) threads.y(),
                    (long) threads.z(),
                    (long) grid.sharedBytes(),
                    stream,
                    parameters,
                    0L);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /// Makes a call that never blocks and takes only nanoseconds. Not counted.
    int callCritical(long a) {
        assert takes(1) : this;
        try {
            return (int) CRITICAL_L.invokeExact(address, a);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /// Makes a call during which no safepoint can begin.
    ///
    /// @param array heap memory, which does not move until the function returns
    int callWithArray(Frame frame, long a, MemorySegment array, long c, long d) {
        assert takes(4) : this;
        try {
            frame.count(counts, call);
            return (int) WithArray.LLLL.invokeExact(address, a, array, c, d);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int callUncounted(long a) {
        assert takes(1) : this;
        try {
            return (int) L.invokeExact(address, a);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    private RuntimeException notCalled(Throwable thrown) {
        if (!present()) {
            return new CudaException(
                    call, CudaResult.NOT_SUPPORTED.code(), "this driver has no such function; update the driver");
        }
        return NativeCode.unexpected(thrown);
    }

    // Arguments are passed one by one and their names as one constant, so that a successful call makes no
    // garbage.

    void check(int code, String names, long a) {
        if (code != 0) {
            throw failed(code, Arguments.text(names, a));
        }
    }

    void check(int code, String names, long a, long b) {
        if (code != 0) {
            throw failed(code, Arguments.text(names, a, b));
        }
    }

    void check(int code, String names, long a, long b, long c) {
        if (code != 0) {
            throw failed(code, Arguments.text(names, a, b, c));
        }
    }

    void check(int code, String names, long a, long b, long c, long d) {
        if (code != 0) {
            throw failed(code, Arguments.text(names, a, b, c, d));
        }
    }

    void check(int code, String names, long a, long b, long c, long d, long e) {
        if (code != 0) {
            throw failed(code, Arguments.text(names, a, b, c, d, e));
        }
    }

    void check(int code, String names, long a, long b, long c, long d, long e, long f) {
        if (code != 0) {
            throw failed(code, Arguments.text(names, a, b, c, d, e, f));
        }
    }

    CudaException failed(int code, String arguments) {
        return new CudaException(call, code, arguments);
    }

    @Override
    public String toString() {
        return call.symbol() + " of shape '" + shape + "'";
    }
}
