package io.cistern.loader.library;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Makes the C calls of an allocator's library. Each call has one method handle, which takes the function's
/// address first. So the handles are constants to the compiler, which inlines them, while the addresses belong
/// to a library.
final class LibraryCalls {
    private static final FunctionDescriptor MALLOC_SHAPE =
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG);
    private static final FunctionDescriptor FREE_SHAPE =
            FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG);
    private static final MethodHandle MALLOC = handle(MALLOC_SHAPE);
    private static final MethodHandle FREE = handle(FREE_SHAPE);

    /// A critical call omits the thread-state transition, which is most of the cost of a call. During such
    /// a call there is no garbage collection, and a call back to Java ends the process.
    private static final Linker.Option CRITICAL = Linker.Option.critical(false);

    private static final MethodHandle CRITICAL_MALLOC = handle(MALLOC_SHAPE, CRITICAL);
    private static final MethodHandle CRITICAL_FREE = handle(FREE_SHAPE, CRITICAL);

    private LibraryCalls() {}

    @SuppressWarnings("restricted")
    private static MethodHandle handle(FunctionDescriptor shape, Linker.Option... options) {
        return Linker.nativeLinker().downcallHandle(shape, options);
    }

    /// `void* malloc(ssize_t size, int device, cudaStream_t stream)`
    static long malloc(MemorySegment function, boolean critical, long byteSize, int device, long stream) {
        try {
            return critical
                    ? (long) CRITICAL_MALLOC.invokeExact(function, byteSize, device, stream)
                    : (long) MALLOC.invokeExact(function, byteSize, device, stream);
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    /// `void free(void* ptr, ssize_t size, int device, cudaStream_t stream)`
    static void free(MemorySegment function, boolean critical, long address, long byteSize, int device, long stream) {
        try {
            if (critical) {
                CRITICAL_FREE.invokeExact(function, address, byteSize, device, stream);
            } else {
                FREE.invokeExact(function, address, byteSize, device, stream);
            }
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    /// The rare calls; their handles are created only if a library has one of them.
    static final class Rare {
        private static final MethodHandle NOTHING = handle(FunctionDescriptor.ofVoid());
        private static final MethodHandle INT = handle(FunctionDescriptor.ofVoid(JAVA_INT));
        private static final MethodHandle FRACTION = handle(FunctionDescriptor.ofVoid(JAVA_DOUBLE, JAVA_INT));
        private static final MethodHandle BASE = handle(FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG));
        private static final MethodHandle RECORD = handle(FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG));
        private static final MethodHandle POOL = handle(FunctionDescriptor.ofVoid(JAVA_INT, JAVA_LONG, JAVA_LONG));

        private Rare() {}

        /// `void reset(void)`
        static void reset(long function) {
            run(() -> NOTHING.invoke(at(function)));
        }

        /// `void init(int device_count)`
        static void init(long function, int deviceCount) {
            run(() -> INT.invoke(at(function), deviceCount));
        }

        /// `void memory_fraction(double fraction, int device)`
        static void memoryFraction(long function, double fraction, int device) {
            run(() -> FRACTION.invoke(at(function), fraction, device));
        }

        /// `void* base_alloc(void* ptr, size_t* size)`
        static long base(long function, long address, MemorySegment size) {
            try {
                return (long) BASE.invokeExact(at(function), address, size.address());
            } catch (Throwable e) {
                throw NativeCode.unexpected(e);
            }
        }

        /// `void record_stream(void* ptr, cudaStream_t stream)`
        static void recordStream(long function, long address, long stream) {
            run(() -> RECORD.invoke(at(function), address, stream));
        }

        /// `void begin|end|release(int device, uint64_t first, uint64_t second)`
        static void pool(long function, int device, long id) {
            run(() -> POOL.invoke(at(function), device, 0L, id));
        }

        private static MemorySegment at(long address) {
            return MemorySegment.ofAddress(address);
        }

        private static void run(Call call) {
            try {
                Object _ = call.run();
            } catch (Throwable e) {
                throw NativeCode.unexpected(e);
            }
        }

        private interface Call {
            @Nullable
            Object run() throws Throwable;
        }
    }
}
