package io.cistern.cuda.ffm;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// One function of the loaded library; counts its calls and checks its results.
///
/// A *shape* spells a C prototype by the width of its parameters: `L` for 64 bits (pointers, handles, sizes),
/// `I` for 32 (`int`, `unsigned`, enums), `H` for a handle of 64 bytes by value. All driver functions return an
/// `int`, so a few shapes serve them all. Each shape has one method handle, which takes the function's address
/// as its first argument. The handles are constants, so the compiler inlines them; the addresses belong to a
/// library, and another library can be loaded beside it.
///
/// An `assert` compares the shape of a caller's argument types with the shape given at binding, since an `int`
/// passed where C reads 64 bits leaves half of them undefined. The tests compare the shape at binding with
/// `cuda.h`.
final class DriverFunction {
    private static final MethodHandle NOTHING = handle("");
    private static final MethodHandle I = handle("I");
    private static final MethodHandle L = handle("L");
    private static final MethodHandle IL = handle("IL");
    private static final MethodHandle LI = handle("LI");
    private static final MethodHandle LL = handle("LL");
    private static final MethodHandle LII = handle("LII");
    private static final MethodHandle LH = handle("LH");
    private static final MethodHandle LIL = handle("LIL");
    private static final MethodHandle LLI = handle("LLI");
    private static final MethodHandle LLL = handle("LLL");
    private static final MethodHandle LILL = handle("LILL");
    private static final MethodHandle LLIL = handle("LLIL");
    private static final MethodHandle LLLL = handle("LLLL");
    private static final MethodHandle LLLLL = handle("LLLLL");
    private static final MethodHandle LLLLLL = handle("LLLLLL");
    private static final MethodHandle LLLLLLL = handle("LLLLLLL");
    private static final MethodHandle LLLLLLLL = handle("LLLLLLLL");
    private static final MethodHandle IIL = handle("IIL");
    private static final MethodHandle LLII = handle("LLII");
    private static final MethodHandle LLLII = handle("LLLII");
    private static final MethodHandle LLILL = handle("LLILL");
    private static final MethodHandle LLLIL = handle("LLLIL");
    private static final MethodHandle ILLL = handle("ILLL");
    private static final MethodHandle LAUNCH = handle("LIIIIIIILLL");

    /// Leaves out the change of thread state that other calls make, which costs more than reading the current
    /// context.
    private static final MethodHandle CRITICAL_L = handle("L", Linker.Option.critical(false));

    /// See [io.cistern.cuda.Copies#arrayToDevice].
    @SuppressWarnings("restricted")
    private static final class WithArray {
        static final MethodHandle LLLL = Linker.nativeLinker()
                .downcallHandle(
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.ADDRESS,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG),
                        Linker.Option.critical(true));
    }

    /// The addresses of functions in the library that was bound first.
    private static final Map<DriverCall, MemorySegment> FIRST = new ConcurrentHashMap<>();

    /// The addresses of the functions of an allocation pair. For a constant the compiler knows that it is never
    /// freed, so it needs no liveness check before a call, as it does for a field. A process hardly ever has
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

    @SuppressWarnings("restricted")
    private static MethodHandle handle(String shape, Linker.Option... options) {
        MemoryLayout[] parameters = shape.chars()
                .mapToObj(c -> switch (c) {
                    case 'L' -> ValueLayout.JAVA_LONG;
                    case 'I' -> ValueLayout.JAVA_INT;
                    default -> Structs.HANDLE;
                })
                .toArray(MemoryLayout[]::new);
        return Linker.nativeLinker().downcallHandle(FunctionDescriptor.of(ValueLayout.JAVA_INT, parameters), options);
    }

    String shape() {
        return shape;
    }

    boolean present() {
        return address.address() != 0;
    }

    int call() {
        assert shape.isEmpty() : this;
        try {
            return counted((int) NOTHING.invokeExact(address));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(int a) {
        assert shape.equals("I") : this;
        try {
            return counted((int) I.invokeExact(address, a));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a) {
        assert shape.equals("L") : this;
        try {
            return counted((int) L.invokeExact(address, a));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(int a, long b) {
        assert shape.equals("IL") : this;
        try {
            return counted((int) IL.invokeExact(address, a, b));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, int b) {
        assert shape.equals("LI") : this;
        try {
            return counted((int) LI.invokeExact(address, a, b));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b) {
        assert shape.equals("LL") : this;
        try {
            return counted((int) LL.invokeExact(address, a, b));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, int b, int c) {
        assert shape.equals("LII") : this;
        try {
            return counted((int) LII.invokeExact(address, a, b, c));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, int b, long c) {
        assert shape.equals("LIL") : this;
        try {
            return counted((int) LIL.invokeExact(address, a, b, c));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, int c) {
        assert shape.equals("LLI") : this;
        try {
            return counted((int) LLI.invokeExact(address, a, b, c));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, long c) {
        assert shape.equals("LLL") : this;
        try {
            return counted((int) LLL.invokeExact(address, a, b, c));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(int a, long b, long c, long d) {
        assert shape.equals("ILLL") : this;
        try {
            return counted((int) ILLL.invokeExact(address, a, b, c, d));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, int b, long c, long d) {
        assert shape.equals("LILL") : this;
        try {
            return counted((int) LILL.invokeExact(address, a, b, c, d));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, int c, long d) {
        assert shape.equals("LLIL") : this;
        try {
            return counted((int) LLIL.invokeExact(address, a, b, c, d));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, long c, long d) {
        assert shape.equals("LLLL") : this;
        try {
            return counted((int) LLLL.invokeExact(address, a, b, c, d));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, long c, long d, long e) {
        assert shape.equals("LLLLL") : this;
        try {
            return counted((int) LLLLL.invokeExact(address, a, b, c, d, e));
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f) {
        assert shape.equals("LLLLLL") : this;
        try {
            return counted((int) LLLLLL.invokeExact(address, a, b, c, d, e, f));
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f, long g) {
        assert shape.equals("LLLLLLL") : this;
        try {
            return counted((int) LLLLLLL.invokeExact(address, a, b, c, d, e, f, g));
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, long d, long e, long f, long g, long h) {
        assert shape.equals("LLLLLLLL") : this;
        try {
            return counted((int) LLLLLLLL.invokeExact(address, a, b, c, d, e, f, g, h));
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(Frame frame, long a, long b, long c, long d, long e, long f, long g) {
        assert shape.equals("LLLLLLL") : this;
        try {
            frame.count(counts, call);
            return (int) LLLLLLL.invokeExact(address, a, b, c, d, e, f, g);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(int a, int b, long c) {
        assert shape.equals("IIL") : this;
        try {
            return counted((int) IIL.invokeExact(address, a, b, c));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, int c, int d) {
        assert shape.equals("LLII") : this;
        try {
            return counted((int) LLII.invokeExact(address, a, b, c, d));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(long a, long b, int c, long d, long e) {
        assert shape.equals("LLILL") : this;
        try {
            return counted((int) LLILL.invokeExact(address, a, b, c, d, e));
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, int d, long e) {
        assert shape.equals("LLLIL") : this;
        try {
            return counted((int) LLLIL.invokeExact(address, a, b, c, d, e));
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    int call(long a, long b, long c, int d, int e) {
        assert shape.equals("LLLII") : this;
        try {
            return counted((int) LLLII.invokeExact(address, a, b, c, d, e));
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    /// @param handle a segment as long as [Structs#HANDLE]
    int call(long a, MemorySegment handle) {
        assert shape.equals("LH") : this;
        try {
            return counted((int) LH.invokeExact(address, a, handle));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    // The most frequent calls. They are counted in their frame, which is cheaper, and before the call, so that
    // nothing for the count stays on the stack meanwhile.

    int call(Frame frame, long a, long b) {
        assert shape.equals("LL") : this;
        try {
            frame.count(counts, call);
            return inPair ? (int) LL.invokeExact(Pair.FREE, a, b) : (int) LL.invokeExact(address, a, b);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(Frame frame, long a, long b, long c) {
        assert shape.equals("LLL") : this;
        try {
            frame.count(counts, call);
            return (int) LLL.invokeExact(address, a, b, c);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    int call(Frame frame, long a, long b, long c, long d) {
        assert shape.equals("LLLL") : this;
        try {
            frame.count(counts, call);
            return inPair
                    ? (int) LLLL.invokeExact(Pair.ALLOCATE, a, b, c, d)
                    : (int) LLLL.invokeExact(address, a, b, c, d);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /// Calls `cuLaunchKernel`.
    int launch(Frame frame, long function, Modules.Grid grid, long stream, long parameters) {
        assert shape.equals("LIIIIIIILLL") : this;
        Modules.Extent blocks = grid.blocks();
        Modules.Extent threads = grid.threads();
        try {
            frame.count(counts, call);
            return (int) LAUNCH.invokeExact(
                    address,
                    function,
                    blocks.x(),
                    blocks.y(),
                    blocks.z(),
                    threads.x(),
                    threads.y(),
                    threads.z(),
                    grid.sharedBytes(),
                    stream,
                    parameters,
                    0L);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /// Makes a call that never blocks and takes only nanoseconds. Not counted.
    int callCritical(long a) {
        assert shape.equals("L") : this;
        try {
            return (int) CRITICAL_L.invokeExact(address, a);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /// Makes a call during which no safepoint begins.
    ///
    /// @param array heap memory, which does not move until the function returns
    int callWithArray(long a, MemorySegment array, long c, long d) {
        assert shape.equals("LLLL") : this;
        try {
            return counted((int) WithArray.LLLL.invokeExact(address, a, array, c, d));
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /// Makes a call without counting it.
    int callUncounted(long a) {
        assert shape.equals("L") : this;
        try {
            return (int) L.invokeExact(address, a);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    private int counted(int code) {
        counts.count(call);
        return code;
    }

    private RuntimeException notCalled(Throwable thrown) {
        if (!present()) {
            return new CudaException(
                    call, CudaResult.NOT_SUPPORTED.code(), "this driver has no such function; update the driver");
        }
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException e ? e : new IllegalStateException(thrown);
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
