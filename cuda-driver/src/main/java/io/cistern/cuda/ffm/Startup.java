package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;

/// The first calls to a library, which find out whether it works here and what it reports. They create no
/// context.
///
/// @param library the library, initialised
/// @param version the result of `cuDriverGetVersion`
/// @param devices number of devices, at least 1
record Startup(DriverLibrary library, int version, int devices) {
    static Startup of(DriverLibrary library) throws UnavailableException {
        DriverFunction init = library.function(DriverCall.INIT, "I");
        DriverFunction getVersion = library.function(DriverCall.DRIVER_GET_VERSION, "L");
        DriverFunction getCount = library.function(DriverCall.DEVICE_GET_COUNT, "L");
        try (Frame frame = Frame.acquire()) {
            requireSuccess(library, DriverCall.INIT, init.call(frame, 0));
            requireSuccess(library, DriverCall.DRIVER_GET_VERSION, getVersion.call(frame, frame.out()));
            int version = frame.outInt();
            requireSuccess(library, DriverCall.DEVICE_GET_COUNT, getCount.call(frame, frame.out()));
            int devices = frame.outInt();
            if (devices == 0) {
                throw new UnavailableException(
                        library.name() + " works but sees no device" + adviceFor(CudaResult.NO_DEVICE));
            }
            return new Startup(library, version, devices);
        }
    }

    /// Returns the version in readable form, for example `13.0`.
    static String versionName(int version) {
        return version / 1000 + "." + version % 1000 / 10;
    }

    private static void requireSuccess(DriverLibrary library, DriverCall call, int code) throws UnavailableException {
        if (code != 0) {
            throw new UnavailableException(call.symbol() + " of " + library.name() + " fails with "
                    + CudaResult.describe(code) + adviceFor(CudaResult.of(code)));
        }
    }

    private static String adviceFor(CudaResult result) {
        return switch (result) {
            case NO_DEVICE ->
                ": no GPU, or none made visible; check nvidia-smi, CUDA_VISIBLE_DEVICES and the container's devices";
            case STUB_LIBRARY ->
                ": this is the toolkit's stub for linking; remove its stubs folder from LD_LIBRARY_PATH";
            case SYSTEM_DRIVER_MISMATCH ->
                ": the kernel module and the library are of different versions; reboot, or reload the module";
            case COMPAT_NOT_SUPPORTED_ON_DEVICE ->
                ": this GPU supports no forward-compatible library; remove the cuda-compat folder from LD_LIBRARY_PATH";
            case SYSTEM_NOT_READY -> ": a system service is not running; start nvidia-fabricmanager";
            case DEVICE_UNAVAILABLE -> ": another process uses the GPU exclusively; check its compute mode";
            case OPERATING_SYSTEM, UNKNOWN -> ": look for NVRM in dmesg; /dev/nvidia* may be missing or inaccessible";
            default -> "";
        };
    }
}
