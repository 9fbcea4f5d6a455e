package io.cistern.handles.internal;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.SharedLibrary;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// Calls C functions that return a status, by the widths of their parameters.
public final class NativeCalls {
    private static final MethodHandle L = handle("L");
    private static final MethodHandle LL = handle("LL");
    private static final MethodHandle LLL = handle("LLL");
    private static final MethodHandle IL = handle("IL");
    private static final MethodHandle LII = handle("LII");
    private static final MethodHandle LILL = handle("LILL");
    private static final MethodHandle LILLL = handle("LILLL");
    private static final MethodHandle TEXT = SharedLibrary.call(FunctionDescriptor.of(ADDRESS, JAVA_INT));

    private NativeCalls() {}

    /// Returns a method handle that calls functions of a shape; it takes the function's address first. In a
    /// shape, `L` stands for a parameter of 64 bits and `I` for one of 32.
    public static MethodHandle handle(String shape) {
        MemoryLayout[] parameters =
                shape.chars().mapToObj(c -> c == 'L' ? JAVA_LONG : JAVA_INT).toArray(MemoryLayout[]::new);
        return SharedLibrary.call(FunctionDescriptor.of(JAVA_INT, parameters));
    }

    /// Calls a function of one parameter.
    public static int call(MemorySegment function, long a) {
        try {
            return (int) L.invokeExact(function, a);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /// Calls a function of two parameters.
    public static int call(MemorySegment function, long a, long b) {
        try {
            return (int) LL.invokeExact(function, a, b);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /// Calls a function of three parameters.
    public static int call(MemorySegment function, long a, long b, long c) {
        try {
            return (int) LLL.invokeExact(function, a, b, c);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /// Calls a function whose first parameter is an `int`.
    public static int call(MemorySegment function, int a, long b) {
        try {
            return (int) IL.invokeExact(function, a, b);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /// Calls a function whose last two parameters are `int`.
    public static int call(MemorySegment function, long a, int b, int c) {
        try {
            return (int) LII.invokeExact(function, a, b, c);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /// Calls a function whose second parameter is an `int`.
    public static int call(MemorySegment function, long a, int b, long c, long d) {
        try {
            return (int) LILL.invokeExact(function, a, b, c, d);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /// Calls a function whose second parameter is an `int`.
    public static int call(MemorySegment function, long a, int b, long c, long d, long e) {
        try {
            return (int) LILLL.invokeExact(function, a, b, c, d, e);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /// Returns the text that a function gives for a status.
    public static String text(MemorySegment function, int status) {
        try {
            return SharedLibrary.text((MemorySegment) TEXT.invokeExact(function, status));
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /// Returns the exception to throw if a method handle threw something; C functions throw nothing.
    public static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException e ? e : new IllegalStateException(thrown);
    }
}
