package io.cistern.onnxruntime;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.cistern.cuda.library.NativeCode;
import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Map;

/// Binds the functions of ONNX Runtime's C interface that this module calls.
///
/// `OrtGetApiBase` gives a table of function pointers for a version of the interface. The table only grows,
/// so a function keeps its slot in all later versions. Before it calls a slot, this class checks that the
/// library has a table of the version that introduced the last of these slots, and that the slots of status
/// objects work as expected.
///
/// **Threads.** Any.
final class OnnxApi {
    /// The version of the interface from which on allocators receive the stream of an allocation.
    static final int OLDEST_VERSION = 23;
    /// The version of the interface from which on allocators can be asked to shrink.
    static final int SHRINK_VERSION = 25;

    private static final int GENERAL_FAILURE = 1;
    private static final int ONLY_ERRORS = 3;
    private static final int DEVICE_ALLOCATOR = 0;
    private static final int DEFAULT_MEMORY = 0;
    /// The name of a device's memory.
    static final String CUDA = "Cuda";

    private static final MethodHandle GET_POINTER = SharedLibrary.call(FunctionDescriptor.of(ADDRESS));
    private static final MethodHandle GET_TABLE = SharedLibrary.call(FunctionDescriptor.of(ADDRESS, JAVA_INT));
    private static final MethodHandle POINTER_OF = SharedLibrary.call(FunctionDescriptor.of(ADDRESS, ADDRESS));
    private static final MethodHandle PAIR = SharedLibrary.call(FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle CREATE_STATUS =
            SharedLibrary.call(FunctionDescriptor.of(ADDRESS, JAVA_INT, ADDRESS));
    private static final MethodHandle CREATE_ENVIRONMENT =
            SharedLibrary.call(FunctionDescriptor.of(ADDRESS, JAVA_INT, ADDRESS, ADDRESS));
    private static final MethodHandle CREATE_MEMORY_INFO =
            SharedLibrary.call(FunctionDescriptor.of(ADDRESS, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS));
    private static final MethodHandle ACCEPT = SharedLibrary.call(FunctionDescriptor.ofVoid(ADDRESS));
    private static final MethodHandle ACCEPT_THREE =
            SharedLibrary.call(FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS));

    /// The position of a function in the table.
    private enum Slot {
        CREATE_STATUS(0),
        GET_ERROR_MESSAGE(2),
        CREATE_ENVIRONMENT(3),
        CREATE_MEMORY_INFO(68),
        RELEASE_ENVIRONMENT(92),
        RELEASE_STATUS(93),
        REGISTER_ALLOCATOR(176),
        UNREGISTER_ALLOCATOR(177),
        CREATE_KEY_VALUE_PAIRS(295),
        ADD_KEY_VALUE_PAIR(296),
        SYNC_STREAM_GET_HANDLE(384);

        static final int TABLE_LENGTH = 385;

        final int index;

        Slot(int index) {
            this.index = index;
        }
    }

    private final MemorySegment table;
    private final String versionText;
    private final int allocatorVersion;

    private OnnxApi(MemorySegment table, String versionText, int allocatorVersion) {
        this.table = table;
        this.versionText = versionText;
        this.allocatorVersion = allocatorVersion;
    }

    /// Finds the library that ONNX Runtime's Java classes have loaded.
    ///
    /// @throws UnsupportedOperationException if it is not loaded, or too old
    static OnnxApi find() {
        return of(SharedLibrary.find("ONNX Runtime", Setting.ONNXRUNTIME_LIBRARY, "libonnxruntime.so.1"));
    }

    /// @throws UnsupportedOperationException if the library is too old, or its table is not the known one
    static OnnxApi of(SharedLibrary library) {
        MemorySegment base =
                NativeCode.memory(pointer(library.require("OrtGetApiBase")).address(), 2 * ADDRESS.byteSize());
        String version = SharedLibrary.text(pointer(base.getAtIndex(ADDRESS, 1)));
        MemorySegment table = table(base, OLDEST_VERSION);
        if (table.address() == 0) {
            throw new UnsupportedOperationException("ONNX Runtime " + version + " (" + library.name()
                    + ") does not pass a block's stream to its allocator; use 1." + OLDEST_VERSION
                    + " or newer");
        }
        boolean shrinks = table(base, SHRINK_VERSION).address() != 0;
        OnnxApi api = new OnnxApi(
                NativeCode.memory(table.address(), Slot.TABLE_LENGTH * ADDRESS.byteSize()),
                version,
                shrinks ? SHRINK_VERSION : OLDEST_VERSION);
        api.requireKnownTable(library.name());
        return api;
    }

    private static MemorySegment table(MemorySegment base, int version) {
        try {
            return (MemorySegment) GET_TABLE.invokeExact(base.getAtIndex(ADDRESS, 0), version);
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    /// Creates, reads and releases a status, which shows that the table is the known one.
    private void requireKnownTable(String library) {
        String said = "Cistern asks";
        MemorySegment status = failure(said);
        String heard = status.address() == 0 ? "" : takeMessage(status);
        if (!heard.equals(said)) {
            throw new UnsupportedOperationException(
                    "the function table of " + library + " is not the one of ONNX Runtime " + versionText);
        }
    }

    /// Returns the address of the library's functions.
    long address() {
        return table.address();
    }

    /// Returns the version of the library, such as `1.29.0`.
    String versionText() {
        return versionText;
    }

    /// Returns the version to write into an allocator's structure.
    int allocatorVersion() {
        return allocatorVersion;
    }

    /// Returns a status that reports a failed call, for the caller to release; 0 if there is no memory for it.
    MemorySegment failure(String message) {
        try (Arena arena = Arena.ofConfined()) {
            return (MemorySegment)
                    CREATE_STATUS.invokeExact(slot(Slot.CREATE_STATUS), GENERAL_FAILURE, arena.allocateFrom(message));
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    /// Returns the process's only environment. The caller must [release][#releaseEnvironment] it.
    MemorySegment environment() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ADDRESS);
            check((MemorySegment) CREATE_ENVIRONMENT.invokeExact(
                    slot(Slot.CREATE_ENVIRONMENT), ONLY_ERRORS, arena.allocateFrom("cistern"), out));
            return out.get(ADDRESS, 0);
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    void releaseEnvironment(MemorySegment environment) {
        accept(Slot.RELEASE_ENVIRONMENT, environment);
    }

    /// Returns a new description of a memory, which stays until the process ends.
    MemorySegment memoryInfo(String name, int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ADDRESS);
            check((MemorySegment) CREATE_MEMORY_INFO.invokeExact(
                    slot(Slot.CREATE_MEMORY_INFO),
                    arena.allocateFrom(name),
                    DEVICE_ALLOCATOR,
                    device,
                    DEFAULT_MEMORY,
                    out));
            return out.get(ADDRESS, 0);
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    /// @throws IllegalStateException if ONNX Runtime refuses, such as a second allocator of a device
    void registerAllocator(MemorySegment environment, MemorySegment allocator) {
        checkPair(Slot.REGISTER_ALLOCATOR, environment, allocator);
    }

    /// @throws IllegalStateException if no allocator is registered for this memory
    void unregisterAllocator(MemorySegment environment, MemorySegment info) {
        checkPair(Slot.UNREGISTER_ALLOCATOR, environment, info);
    }

    /// Returns the `CUstream` of one of ONNX Runtime's stream objects; 0 if it is a stream of the host.
    long streamHandle(MemorySegment stream) {
        try {
            return ((MemorySegment) POINTER_OF.invokeExact(slot(Slot.SYNC_STREAM_GET_HANDLE), stream)).address();
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    /// Returns an object with pairs of texts. The caller owns it.
    MemorySegment keyValuePairs(Map<String, Long> values) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ADDRESS);
            ACCEPT.invokeExact(slot(Slot.CREATE_KEY_VALUE_PAIRS), out);
            MemorySegment pairs = out.get(ADDRESS, 0);
            for (var value : values.entrySet()) {
                ACCEPT_THREE.invokeExact(
                        slot(Slot.ADD_KEY_VALUE_PAIR),
                        pairs,
                        arena.allocateFrom(value.getKey()),
                        arena.allocateFrom(value.getValue().toString()));
            }
            return pairs;
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    private MemorySegment slot(Slot slot) {
        return table.getAtIndex(ADDRESS, slot.index);
    }

    private static MemorySegment pointer(MemorySegment function) {
        try {
            return (MemorySegment) GET_POINTER.invokeExact(function);
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    private void accept(Slot function, MemorySegment argument) {
        try {
            ACCEPT.invokeExact(slot(function), argument);
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    private void checkPair(Slot function, MemorySegment first, MemorySegment second) {
        try {
            check((MemorySegment) PAIR.invokeExact(slot(function), first, second));
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    private void check(MemorySegment status) {
        if (status.address() != 0) {
            throw new IllegalStateException("ONNX Runtime " + versionText + " refuses: " + takeMessage(status));
        }
    }

    private String takeMessage(MemorySegment status) {
        try {
            return SharedLibrary.text((MemorySegment) POINTER_OF.invokeExact(slot(Slot.GET_ERROR_MESSAGE), status));
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        } finally {
            accept(Slot.RELEASE_STATUS, status);
        }
    }
}
