package io.cistern.handles.cublas;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Native memory of a handle for arguments that a call takes by address: alpha, beta and a pointer. The library
/// has read them when the call returns, so the next call may overwrite them.
///
/// **Threads.** Only the thread that has the handle.
final class Scalars {
    private static final long BETA = 8;
    private static final long POINTER = 16;

    private final MemorySegment memory = Arena.ofAuto().allocate(3 * Long.BYTES, Long.BYTES);

    void set(Gemm gemm) {
        if (gemm.type().scale() == ElementType.FLOAT64) {
            memory.set(JAVA_DOUBLE, 0, gemm.alpha());
            memory.set(JAVA_DOUBLE, BETA, gemm.beta());
        } else {
            memory.set(JAVA_FLOAT, 0, (float) gemm.alpha());
            memory.set(JAVA_FLOAT, BETA, (float) gemm.beta());
        }
    }

    long alpha() {
        return memory.address();
    }

    long beta() {
        return memory.address() + BETA;
    }

    /// Writes a pointer.
    ///
    /// @return the address at which the pointer is stored
    long pointer(long value) {
        memory.set(JAVA_LONG, POINTER, value);
        return memory.address() + POINTER;
    }
}
