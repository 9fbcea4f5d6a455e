package io.cistern.cuda.ffm;

import io.cistern.cuda.DriverCall;
import java.lang.foreign.MemorySegment;

/// One facet of the real driver: functions of its library, which run in the primary context of a device.
///
/// `names` lists the device and the arguments that follow; the last arguments may lack a name. Arguments
/// are passed one by one, so that a call makes no garbage.
abstract class NativeFacet {
    final Contexts contexts;
    private final DriverLibrary library;

    NativeFacet(DriverLibrary library, Contexts contexts) {
        this.library = library;
        this.contexts = contexts;
    }

    /// Binds a function.
    ///
    /// @param shape its parameters, in the letters of [DriverFunction]
    final DriverFunction bind(DriverCall call, String shape) {
        return library.function(call, shape);
    }

    final void run(DriverFunction function, int device, String names, long a) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, a), names, device, a);
        }
    }

    final void run(DriverFunction function, int device, String names, long a, long b) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, a, b), names, device, a, b);
        }
    }

    final void run(DriverFunction function, int device, String names, long a, long b, long c) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, a, b, c), names, device, a, b, c);
        }
    }

    final void run(DriverFunction function, int device, String names, long a, long b, long c, long d) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, a, b, c, d), names, device, a, b, c, d);
        }
    }

    /// Calls a function whose first parameter points to its result, and returns the result.
    final long ask(DriverFunction function, int device, String names, long a) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, frame.zeroedOut(), a), names, device, a);
            return frame.outLong();
        }
    }

    final long ask(DriverFunction function, int device, String names, long a, long b) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, frame.zeroedOut(), a, b), names, device, a, b);
            return frame.outLong();
        }
    }

    final long ask(DriverFunction function, int device, String names, long a, long b, long c) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, frame.zeroedOut(), a, b, c), names, device, a, b, c);
            return frame.outLong();
        }
    }

    final long ask(DriverFunction function, int device, String names, long a, long b, long c, long d) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, frame.zeroedOut(), a, b, c, d), names, device, a, b, c, d);
            return frame.outLong();
        }
    }

    /// Calls a function about one object, whose second parameter points to its result, and returns the
    /// result.
    final long askAbout(DriverFunction function, int device, String names, long object) {
        try (Frame frame = contexts.enter(function, device)) {
            function.check(function.call(frame, object, frame.zeroedOut()), names, device, object);
            return frame.outLong();
        }
    }

    /// Checks that native memory is alive and long enough, and returns its address.
    ///
    /// @throws IllegalArgumentException if it is on the heap or too short
    /// @throws IllegalStateException if its arena was closed
    static long hostAddress(MemorySegment memory, long byteSize) {
        if (!memory.isNative()) {
            throw new IllegalArgumentException("the GPU can't reach memory on the heap: " + memory);
        }
        if (!memory.scope().isAlive()) {
            throw new IllegalStateException("host memory of a closed arena: " + memory);
        }
        if (byteSize < 0 || byteSize > memory.byteSize()) {
            throw new IllegalArgumentException(
                    "byteSize=" + byteSize + ", but the host memory has " + memory.byteSize() + " bytes");
        }
        return memory.address();
    }
}
