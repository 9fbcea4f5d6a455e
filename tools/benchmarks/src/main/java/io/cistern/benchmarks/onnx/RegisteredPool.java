package io.cistern.benchmarks.onnx;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/// Registers ONNX Runtime's pool of `cudaMallocAsync`, which its Java classes can't do.
@SuppressWarnings("restricted")
final class RegisteredPool {
    private static final int VERSION = 25;
    private static final int GET_ERROR_MESSAGE = 2;
    private static final int CREATE_ENVIRONMENT = 3;
    private static final int CREATE_MEMORY_INFO = 68;
    private static final int CREATE_ARENA_CONFIGURATION = 164;
    private static final int CREATE_AND_REGISTER_ALLOCATOR = 259;
    private static final int LAST = 259;

    private final Arena arena = Arena.global();
    private final MemorySegment table;

    private RegisteredPool() throws Throwable {
        SymbolLookup library = SymbolLookup.libraryLookup("libonnxruntime.so.1", arena);
        MemorySegment base =
                (MemorySegment) handle(library.find("OrtGetApiBase").orElseThrow(), FunctionDescriptor.of(ADDRESS))
                        .invokeExact();
        MethodHandle getTable =
                handle(base.reinterpret(ADDRESS.byteSize()).get(ADDRESS, 0), FunctionDescriptor.of(ADDRESS, JAVA_INT));
        table = ((MemorySegment) getTable.invokeExact(VERSION)).reinterpret((LAST + 1) * ADDRESS.byteSize());
    }

    static void register() {
        try {
            new RegisteredPool().registerPool();
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private void registerPool() throws Throwable {
        MemorySegment environment = made(CREATE_ENVIRONMENT, JAVA_INT, 3, ADDRESS, arena.allocateFrom("pool"));
        MemorySegment info = arena.allocate(ADDRESS);
        check((MemorySegment) function(CREATE_MEMORY_INFO, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS)
                .invokeExact(arena.allocateFrom("Cuda"), 0, 0, 0, info));
        MemorySegment keys = arena.allocate(ADDRESS);
        keys.set(ADDRESS, 0, arena.allocateFrom("use_cuda_mempool"));
        MemorySegment values = arena.allocateFrom(JAVA_LONG, 1L);
        MemorySegment configuration = arena.allocate(ADDRESS);
        check((MemorySegment) function(CREATE_ARENA_CONFIGURATION, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS)
                .invokeExact(keys, values, 1L, configuration));
        check((MemorySegment)
                function(CREATE_AND_REGISTER_ALLOCATOR, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG)
                        .invokeExact(
                                environment,
                                arena.allocateFrom("CUDAExecutionProvider"),
                                info.get(ADDRESS, 0),
                                configuration.get(ADDRESS, 0),
                                MemorySegment.NULL,
                                MemorySegment.NULL,
                                0L));
    }

    private MemorySegment made(int slot, MemoryLayout first, int a, MemoryLayout second, MemorySegment b)
            throws Throwable {
        MemorySegment out = arena.allocate(ADDRESS);
        check((MemorySegment) function(slot, first, second, ADDRESS).invokeExact(a, b, out));
        return out.get(ADDRESS, 0);
    }

    private MethodHandle function(int slot, MemoryLayout... parameters) {
        return handle(table.getAtIndex(ADDRESS, slot), FunctionDescriptor.of(ADDRESS, parameters));
    }

    private static MethodHandle handle(MemorySegment function, FunctionDescriptor shape) {
        return Linker.nativeLinker().downcallHandle(function, shape);
    }

    private void check(MemorySegment status) throws Throwable {
        if (status.address() != 0) {
            MemorySegment text = (MemorySegment)
                    handle(table.getAtIndex(ADDRESS, GET_ERROR_MESSAGE), FunctionDescriptor.of(ADDRESS, ADDRESS))
                            .invokeExact(status);
            throw new IllegalStateException(text.reinterpret(4096).getString(0));
        }
    }
}
