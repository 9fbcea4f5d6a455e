package io.cistern.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// Pins the calling platform thread to one processor (`sched_setaffinity`, Linux), so that programs that take
/// turns use the same one. The JVM's other threads stay free.
final class OneProcessor {
    private static final long MASK_BYTES = 128;

    private OneProcessor() {}

    /// Pins the thread; if that fails, it says so on standard error and goes on.
    @SuppressWarnings("restricted")
    static void pin(int processor) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(MASK_BYTES);
            mask.set(ValueLayout.JAVA_BYTE, processor / Byte.SIZE, (byte) (1 << processor % Byte.SIZE));
            MethodHandle set = Linker.nativeLinker()
                    .downcallHandle(
                            Linker.nativeLinker().defaultLookup().findOrThrow("sched_setaffinity"),
                            FunctionDescriptor.of(
                                    ValueLayout.JAVA_INT,
                                    ValueLayout.JAVA_INT,
                                    ValueLayout.JAVA_LONG,
                                    ValueLayout.ADDRESS));
            if ((int) set.invokeExact(0, MASK_BYTES, mask) != 0) {
                System.err.println("processor " + processor + " is not available; the thread stays free");
            }
        } catch (Throwable notHere) {
            System.err.println("sched_setaffinity: " + notHere);
        }
    }
}
