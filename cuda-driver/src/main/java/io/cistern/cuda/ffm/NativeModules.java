package io.cistern.cuda.ffm;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Modules from PTX text, and launches.
final class NativeModules implements Modules {
    private final Contexts contexts;
    private final DriverFunction load;
    private final DriverFunction unload;
    private final DriverFunction getFunction;
    private final DriverFunction launch;

    NativeModules(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        load = library.function(DriverCall.MODULE_LOAD_DATA, "LL");
        unload = library.function(DriverCall.MODULE_UNLOAD, "L");
        getFunction = library.function(DriverCall.MODULE_GET_FUNCTION, "LLL");
        launch = library.function(DriverCall.LAUNCH_KERNEL, "LIIIIIIILLL");
    }

    @Override
    public long load(int device, String ptx) {
        try (Arena arena = Arena.ofConfined()) {
            long text = arena.allocateFrom(ptx).address();
            try (Frame frame = contexts.enter(load, device)) {
                int code = load.call(frame.out(), text);
                if (code != 0) {
                    throw load.failed(code, "device=" + device + ", PTX of " + ptx.length() + " characters");
                }
                return frame.outLong();
            }
        }
    }

    @Override
    public void unload(int device, long module) {
        try (Frame _ = contexts.enter(unload, device)) {
            unload.check(unload.call(module), "device, module", device, module);
        }
    }

    @Override
    public long function(int device, long module, String name) {
        try (Arena arena = Arena.ofConfined()) {
            long text = arena.allocateFrom(name).address();
            try (Frame frame = contexts.enter(getFunction, device)) {
                int code = getFunction.call(frame.out(), module, text);
                if (code != 0) {
                    throw getFunction.failed(code, Arguments.text("device, module", device, module) + ", name=" + name);
                }
                return frame.outLong();
            }
        }
    }

    @Override
    public void launch(int device, long function, Grid grid, long stream, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            long parameters = parameters(arena, arguments);
            try (Frame _ = contexts.enter(launch, device)) {
                int code =
                        launch.launch(function, grid.blocks(), grid.threads(), grid.sharedBytes(), stream, parameters);
                launch.check(
                        code,
                        "device, function, blocks, threads, sharedBytes, stream",
                        device,
                        function,
                        grid.blocks(),
                        grid.threads(),
                        grid.sharedBytes(),
                        stream);
            }
        }
    }

    /// The address of an array of pointers, one to each value.
    private static long parameters(Arena arena, Object[] arguments) {
        MemorySegment pointers = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, arguments.length));
        for (int i = 0; i < arguments.length; i++) {
            pointers.setAtIndex(
                    ValueLayout.JAVA_LONG, i, value(arena, arguments[i]).address());
        }
        return pointers.address();
    }

    private static MemorySegment value(Arena arena, Object argument) {
        return switch (argument) {
            case Long v -> arena.allocateFrom(ValueLayout.JAVA_LONG, v);
            case Integer v -> arena.allocateFrom(ValueLayout.JAVA_INT, v);
            case Float v -> arena.allocateFrom(ValueLayout.JAVA_FLOAT, v);
            case Double v -> arena.allocateFrom(ValueLayout.JAVA_DOUBLE, v);
            case Short v -> arena.allocateFrom(ValueLayout.JAVA_SHORT, v);
            case Byte v -> arena.allocateFrom(ValueLayout.JAVA_BYTE, v);
            default ->
                throw new IllegalArgumentException(
                        "a kernel takes no " + argument.getClass().getName());
        };
    }
}
