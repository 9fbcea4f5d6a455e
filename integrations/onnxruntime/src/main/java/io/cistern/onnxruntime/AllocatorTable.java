package io.cistern.onnxruntime;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Lets ONNX Runtime call an allocator in Java: a C structure `OrtAllocator` whose functions are Java methods.
///
/// | byte | field | answered by |
/// |---|---|---|
/// | 0 | `version` | [OnnxApi#allocatorVersion] |
/// | 8 | `Alloc(self, size)` | [SessionCalls#allocate] |
/// | 16 | `Free(self, block)` | [SessionCalls#free] |
/// | 24 | `Info(self)` | the description of the memory |
/// | 32 | `Reserve(self, size)` | [SessionCalls#allocate] |
/// | 40 | `GetStats(self, out)` | [SessionCalls#statistics] |
/// | 48 | `AllocOnStream(self, size, stream)` | [SessionCalls#allocateOnStream] |
/// | 56 | `Shrink(self)`, since 1.25 | [SessionCalls#shrink] |
///
/// The table swallows exceptions of the calls, which in C would end the process.
///
/// **Lifetime.** The structure stays callable until the process ends, because a session that was made with it
/// may free its weights at any time. So a device has one, which serves each of its [OnnxMemory]s in turn, and
/// leads frees to the one that made the block.
///
/// **Threads.** ONNX Runtime calls from any thread.
final class AllocatorTable {
    private static final long BYTES = 64;
    private static final long FAILED = 0;
    private static final long DONE = 0;

    /// @param library the address of its functions
    private record Place(long library, int device) {}

    private static final Map<Place, AllocatorTable> TABLES = new ConcurrentHashMap<>();

    private final MemorySegment info;
    private final MemorySegment structure;

    /// Serves allocations, and is closed or open.
    private volatile @Nullable SessionCalls calls;

    /// Closed, with live blocks when others took its place.
    private final Set<SessionCalls> former = ConcurrentHashMap.newKeySet();

    /// Returns the table of a device.
    static AllocatorTable of(OnnxApi api, int device) {
        return TABLES.computeIfAbsent(
                new Place(api.address(), device),
                _ -> new AllocatorTable(api.allocatorVersion(), api.memoryInfo(OnnxApi.CUDA, device)));
    }

    /// @param version a version of ONNX Runtime's C interface
    /// @param info an `OrtMemoryInfo` that lives until the process ends
    AllocatorTable(int version, MemorySegment info) {
        this.info = info;
        FunctionDescriptor ofSelf = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG);
        FunctionDescriptor ofTwo = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG);
        MemorySegment allocate = function("allocate", ofTwo);
        structure = Arena.global().allocate(BYTES, ADDRESS.byteAlignment());
        structure.set(JAVA_INT, 0, version);
        structure.set(ADDRESS, 8, allocate);
        structure.set(ADDRESS, 16, function("free", FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG)));
        structure.set(ADDRESS, 24, function("info", ofSelf));
        structure.set(ADDRESS, 32, allocate);
        structure.set(ADDRESS, 40, function("statistics", ofTwo));
        structure.set(
                ADDRESS,
                48,
                function("allocateOnStream", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG)));
        if (version >= OnnxApi.SHRINK_VERSION) {
            structure.set(ADDRESS, 56, function("shrink", ofSelf));
        }
    }

    private MemorySegment function(String method, FunctionDescriptor shape) {
        try {
            MethodType type = shape.toMethodType();
            return NativeCode.function(MethodHandles.lookup().bind(this, method, type), shape);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(method, e);
        }
    }

    /// Lets calls serve from now on, instead of those that were closed. One thread at a time calls it.
    void serve(SessionCalls next) {
        SessionCalls closed = calls;
        if (closed != null && closed.hasAny()) {
            former.add(closed);
        }
        former.removeIf(each -> !each.hasAny());
        calls = next;
    }

    private SessionCalls calls() {
        return Objects.requireNonNull(calls);
    }

    /// Returns the description of the memory, an `OrtMemoryInfo`.
    MemorySegment info() {
        return info;
    }

    /// Returns the structure, for ONNX Runtime.
    MemorySegment structure() {
        return structure;
    }

    // C calls the methods below, with the structure as first argument. The handlers of exceptions call nothing,
    // because there may be no stack or no Java heap left.

    long allocate(long self, long byteSize) {
        try {
            return calls().allocate(byteSize);
        } catch (Throwable _) {
            return FAILED;
        }
    }

    void free(long self, long address) {
        try {
            madeBy(address).free(address);
        } catch (Throwable _) {
            // The calls have reported the failure already, if they could.
        }
    }

    private SessionCalls madeBy(long address) {
        if (!former.isEmpty()) {
            for (SessionCalls each : former) {
                if (each.has(address)) {
                    return each;
                }
            }
        }
        return calls();
    }

    long info(long self) {
        return info.address();
    }

    long statistics(long self, long out) {
        try {
            return calls().statistics(out);
        } catch (Throwable _) {
            return DONE;
        }
    }

    long allocateOnStream(long self, long byteSize, long syncStream) {
        try {
            return calls().allocateOnStream(byteSize, syncStream);
        } catch (Throwable _) {
            return FAILED;
        }
    }

    long shrink(long self) {
        try {
            return calls().shrink();
        } catch (Throwable _) {
            return DONE;
        }
    }
}
