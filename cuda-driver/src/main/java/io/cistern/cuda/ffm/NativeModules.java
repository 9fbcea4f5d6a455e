package io.cistern.cuda.ffm;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

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
        if (arguments.length > Frame.MOST_ARGUMENTS) {
            try (Arena arena = Arena.ofConfined()) {
                launch(device, function, grid, stream, arguments, arena.allocate(16L * arguments.length, Long.BYTES));
            }
        } else {
            launch(device, function, grid, stream, arguments, null);
        }
    }

    /// @param memory for the arguments; null for the frame's
    private void launch(
            int device, long function, Grid grid, long stream, Object[] arguments, @Nullable MemorySegment memory) {
        try (Frame frame = contexts.enter(launch, device)) {
            long parameters = parameters(memory != null ? memory : frame.arguments(), arguments);
            int code = launch.launch(frame, function, grid, stream, parameters);
            if (code != 0) {
                throw launch.failed(code, describe(device, function, grid, stream));
            }
        }
    }

    private static String describe(int device, long function, Grid grid, long stream) {
        return Arguments.text("device, function, stream", device, function, stream) + ", " + grid;
    }

    /// The address of an array of pointers, one to each value behind it.
    private static long parameters(MemorySegment memory, Object[] arguments) {
        long values = memory.byteSize() / 2;
        for (int i = 0; i < arguments.length; i++) {
            memory.setAtIndex(ValueLayout.JAVA_LONG, i, memory.address() + values + 8L * i);
            put(memory, values + 8L * i, arguments[i]);
        }
        return memory.address();
    }

    private static void put(MemorySegment memory, long offset, Object argument) {
        switch (argument) {
            case Long v -> memory.set(ValueLayout.JAVA_LONG, offset, v);
            case Integer v -> memory.set(ValueLayout.JAVA_INT, offset, v);
            case Float v -> memory.set(ValueLayout.JAVA_FLOAT, offset, v);
            case Double v -> memory.set(ValueLayout.JAVA_DOUBLE, offset, v);
            case Short v -> memory.set(ValueLayout.JAVA_SHORT, offset, v);
            case Byte v -> memory.set(ValueLayout.JAVA_BYTE, offset, v);
            default ->
                throw new IllegalArgumentException(
                        "a kernel takes no " + argument.getClass().getName());
        }
    }
}
