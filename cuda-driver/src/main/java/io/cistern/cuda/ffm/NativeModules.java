package io.cistern.cuda.ffm;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Modules from PTX text, and launches, through the real driver.
final class NativeModules extends NativeFacet implements Modules {
    private final DriverFunction load = bind(DriverCall.MODULE_LOAD_DATA, "LL");
    private final DriverFunction unload = bind(DriverCall.MODULE_UNLOAD, "L");
    private final DriverFunction getFunction = bind(DriverCall.MODULE_GET_FUNCTION, "LLL");
    private final DriverFunction launch = bind(DriverCall.LAUNCH_KERNEL, "LIIIIIIILLL");

    NativeModules(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public long load(int device, String ptx) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(load, device)) {
            long text = arena.allocateFrom(ptx).address();
            int code = load.call(frame, frame.out(), text);
            if (code != 0) {
                throw load.failed(code, "device=" + device + ", PTX of " + ptx.length() + " characters");
            }
            return frame.outLong();
        }
    }

    @Override
    public void unload(int device, long module) {
        run(unload, device, "device, module", module);
    }

    @Override
    public long function(int device, long module, String name) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(getFunction, device)) {
            long text = arena.allocateFrom(name).address();
            int code = getFunction.call(frame, frame.out(), module, text);
            if (code != 0) {
                throw getFunction.failed(code, Arguments.text("device, module", device, module) + ", name=" + name);
            }
            return frame.outLong();
        }
    }

    /// The stream and the function name their context, so the current context is queried only if the launch
    /// fails.
    @Override
    public void launch(int device, long function, Grid grid, long stream, Object... arguments) {
        if (arguments.length > Frame.MAX_ARGUMENTS) {
            launchWithMany(device, function, grid, stream, arguments);
            return;
        }
        if (contexts.isNamedBy(stream, device)) {
            try (Frame frame = Frame.acquire()) {
                int code = launch.launch(frame, function, grid, stream, inFrame(frame, arguments));
                if (code == 0 || contexts.isCurrent(frame, device)) {
                    launched(code, device, function, grid, stream);
                    return;
                }
            }
        }
        try (Frame frame = contexts.enter(launch, device)) {
            int code = launch.launch(frame, function, grid, stream, inFrame(frame, arguments));
            launched(code, device, function, grid, stream);
        }
    }

    private void launchWithMany(int device, long function, Grid grid, long stream, Object[] arguments) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(launch, device)) {
            MemorySegment values = arena.allocate(ValueLayout.JAVA_LONG, arguments.length);
            MemorySegment pointers = arena.allocate(ValueLayout.JAVA_LONG, arguments.length);
            for (int i = 0; i < arguments.length; i++) {
                values.setAtIndex(ValueLayout.JAVA_LONG, i, bits(arguments[i]));
                pointers.setAtIndex(ValueLayout.JAVA_LONG, i, values.address() + 8L * i);
            }
            int code = launch.launch(frame, function, grid, stream, pointers.address());
            launched(code, device, function, grid, stream);
        }
    }

    private void launched(int code, int device, long function, Grid grid, long stream) {
        if (code != 0) {
            throw launch.failed(
                    code, Arguments.text("device, function, stream", device, function, stream) + ", " + grid);
        }
    }

    private static long inFrame(Frame frame, Object[] arguments) {
        for (int i = 0; i < arguments.length; i++) {
            frame.setArgument(i, bits(arguments[i]));
        }
        return frame.arguments();
    }

    /// Returns an argument as 64 bits. The driver reads as many of its bytes as the kernel's parameter has; on
    /// all supported processors the lowest bytes come first.
    private static long bits(Object argument) {
        return switch (argument) {
            case Long v -> v;
            case Region region -> region.address();
            case Integer v -> v;
            case Float v -> Float.floatToRawIntBits(v);
            case Double v -> Double.doubleToRawLongBits(v);
            case Short v -> v;
            case Byte v -> v;
            default ->
                throw new IllegalArgumentException(
                        "a kernel can't take " + argument.getClass().getName());
        };
    }
}
