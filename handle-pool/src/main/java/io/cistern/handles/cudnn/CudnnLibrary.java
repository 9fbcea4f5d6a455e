package io.cistern.handles.cudnn;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.Devices;
import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.internal.NativeCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;

/// Calls the functions of a loaded `libcudnn` that concern handles.
final class CudnnLibrary implements HandleLibrary<CudnnHandle> {
    private static final String[] NAMES = {"libcudnn.so.9", "libcudnn.so.8"};

    private final Devices devices;
    private final long version;
    private final MemorySegment create;
    private final MemorySegment destroy;
    private final MemorySegment setStream;
    private final MemorySegment errorString;

    private CudnnLibrary(SharedLibrary library, Devices devices) {
        this.devices = devices;
        create = library.require("cudnnCreate");
        destroy = library.require("cudnnDestroy");
        setStream = library.require("cudnnSetStream");
        errorString = library.require("cudnnGetErrorString");
        version = version(library);
    }

    /// @throws UnsupportedOperationException with the reason, if the library can't be used
    static CudnnLibrary find(Devices devices) {
        return new CudnnLibrary(find(), devices);
    }

    static SharedLibrary find() {
        return SharedLibrary.find("cuDNN", Setting.CUDNN_LIBRARY, NAMES);
    }

    static CudnnLibrary load(String place, Devices devices) {
        return new CudnnLibrary(SharedLibrary.load("cuDNN", Setting.CUDNN_LIBRARY, place, NAMES), devices);
    }

    private static long version(SharedLibrary library) {
        try {
            return (long) library.function("cudnnGetVersion", FunctionDescriptor.of(JAVA_LONG))
                    .invokeExact();
        } catch (Throwable e) {
            throw NativeCalls.unexpected(e);
        }
    }

    /// Returns the version as `cudnnGetVersion` codes it.
    long version() {
        return version;
    }

    @Override
    public String name() {
        return "cuDNN";
    }

    @Override
    public CudnnHandle create(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            check(NativeCalls.call(create, out.address()), "cudnnCreate", () -> "device=" + device);
            return new CudnnHandle(out.get(JAVA_LONG, 0), device);
        }
    }

    @Override
    public void destroy(CudnnHandle handle, int device) {
        check(NativeCalls.call(destroy, handle.value()), "cudnnDestroy", handle::toString);
    }

    @Override
    public void setStream(CudnnHandle handle, long stream) {
        long before = devices.enterContext(handle.device());
        try {
            check(
                    NativeCalls.call(setStream, handle.value(), stream),
                    "cudnnSetStream",
                    () -> handle + ", stream=0x" + Long.toHexString(stream));
        } finally {
            devices.leaveContext(handle.device(), before);
        }
    }

    private void check(int status, String call, Supplier<String> arguments) {
        if (status != 0) {
            throw new CudnnException(call, status, NativeCalls.text(errorString, status), arguments.get());
        }
    }
}
