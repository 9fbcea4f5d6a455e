package io.cistern.loader.functions;

import io.cistern.DeviceMemory;

/// For a native program that starts Java in itself in order to allocate from Cistern: it asks this class, by JNI,
/// for the two C functions of the process's own device memory, and needs no more of Java than that. An example in
/// C stands in `examples/src/main/c/cistern_host.c`.
///
/// **Threads.** Any.
public final class NativeHost {
    private NativeHost() {}

    private static final class Functions {
        static final AllocatorFunctions OF_PROCESS = AllocatorFunctions.of(DeviceMemory.system());

        private Functions() {}
    }

    /// The address of `malloc`: see [AllocatorFunctions#malloc].
    public static long malloc() {
        return Functions.OF_PROCESS.malloc().address();
    }

    /// The address of `free`: see [AllocatorFunctions#free].
    public static long free() {
        return Functions.OF_PROCESS.free().address();
    }

    /// What the process's current allocator counted on a device: allocations, frees, bytes alive.
    public static long[] counts(int device) {
        var counted = DeviceMemory.system().current(device).statistics(device);
        return new long[] {counted.allocations(), counted.frees(), counted.requestedBytes()};
    }
}
