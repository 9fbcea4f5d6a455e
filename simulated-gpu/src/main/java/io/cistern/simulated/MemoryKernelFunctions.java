package io.cistern.simulated;

import io.cistern.cuda.LinearMemory.AddressRange;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.List;

/// The Java counterparts of the kernels in the driver's own memory tests.
final class MemoryKernelFunctions {
    /// Reading speed of the counting kernels, in bytes per nanosecond.
    private static final long BYTES_PER_NANO = 2000;

    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private MemoryKernelFunctions() {}

    static void registerIn(Kernels kernels) {
        kernels.register("cistern_latch", new Latch());
        kernels.register(
                "cistern_count_mismatches_u32",
                new OverWords(launch -> count(launch, launch.intAt(2), 0, launch.longAt(3))));
        kernels.register(
                "cistern_count_sequence_mismatches_u32",
                new OverWords(launch -> count(launch, launch.intAt(2), 1, launch.longAt(3))));
        kernels.register("cistern_write_sequence_u32", new OverWords(MemoryKernelFunctions::writeSequence));
    }

    private static void count(KernelLaunch launch, int first, int step, long counterAddress) {
        KernelMemory memory = launch.memory();
        long mismatches = memory.countMismatches(launch.longAt(0), launch.longAt(1), first, step);
        memory.writeLong(counterAddress, memory.readLong(counterAddress) + mismatches);
    }

    private static void writeSequence(KernelLaunch launch) {
        long address = launch.longAt(0);
        long count = launch.longAt(1);
        int value = launch.intAt(2);
        for (long done = 0; done < count; ) {
            byte[] bytes = new byte[(int) Math.min(4 * (count - done), 1 << 16)];
            for (int i = 0; i < bytes.length; i += 4, value++) {
                WORD.set(bytes, i, value);
            }
            launch.memory().write(address + 4 * done, bytes);
            done += bytes.length / 4;
        }
    }

    /// A kernel that spins until the flag at its only argument is not zero.
    private static final class Latch implements SimulatedKernel {
        @Override
        public void run(KernelLaunch launch) {}

        @Override
        public boolean spins(KernelLaunch launch) {
            return launch.memory().readWord(launch.longAt(0)) == 0;
        }
    }

    /// A kernel whose first two arguments are the address and the number of its words.
    private record OverWords(java.util.function.Consumer<KernelLaunch> work) implements SimulatedKernel {
        @Override
        public void run(KernelLaunch launch) {
            work.accept(launch);
        }

        @Override
        public long durationNanos(KernelLaunch launch) {
            return 2_000 + 4 * launch.longAt(1) / BYTES_PER_NANO;
        }

        @Override
        public List<AddressRange> uses(KernelLaunch launch) {
            return List.of(new AddressRange(launch.longAt(0), 4 * launch.longAt(1)));
        }
    }
}
