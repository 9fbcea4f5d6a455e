package io.cistern.benchmarks.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.jcuda.JCudaContext;
import io.cistern.jcuda.JCudaPointers;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import jcuda.driver.JCudaDriver;

/// JCuda programs before and after their memory was exchanged, in turns in one process, end to end; contents are
/// checked after the last run of each.
///
/// Arguments: rounds (11). Prints a line of JSON for each program and memory. Needs a GPU, JCuda's native parts, and
/// for the matrices cuBLAS 12; without that it says so.
public final class BeforeAndAfter {
    private static final int RUNS_A_ROUND = 5;

    private BeforeAndAfter() {}

    /// Measures and prints.
    public static void main(String[] arguments) {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 11;
        DeviceMemory memory = DeviceMemory.system();
        if (memory.driver().simulated()) {
            System.err.println("BeforeAndAfter: JCuda needs a GPU");
            return;
        }
        try (JCudaContext _ = JCudaContext.enter(memory, 0)) {
            JCudaDriver.setExceptionsEnabled(true);
            JCudaDriver.cuInit(0);
            requireSameContext(memory);
            Kernels kernels = new Kernels();
            List<JCudaProgram> programs = new ArrayList<>(List.of(
                    new VectorAdd(kernels, 1 << 20), new ManyVectors(kernels), new ImageFilter(kernels, 1920, 1080)));
            addIfPossible(programs, () -> new MatrixMultiply(1024));
            boolean right = true;
            for (JCudaProgram program : programs) {
                right &= measure(program, rounds);
            }
            if (!right) {
                throw new IllegalStateException("a program's results are wrong");
            }
        }
    }

    /// A pointer made of Cistern's memory must be good in JCuda's calls, in either form.
    private static void requireSameContext(DeviceMemory memory) {
        long address = memory.allocate(4, 0, 0);
        JCudaDriver.cuMemsetD32(JCudaPointers.of(address), 42, 1);
        int[] back = new int[1];
        JCudaDriver.cuMemcpyDtoH(jcuda.Pointer.to(back), JCudaPointers.of(address), 4);
        memory.free(address, 0);
        if (back[0] != 42) {
            throw new IllegalStateException("JCuda does not see Cistern's memory");
        }
    }

    private static void addIfPossible(List<JCudaProgram> programs, Supplier<JCudaProgram> program) {
        try {
            programs.add(program.get());
        } catch (LinkageError notInstalled) {
            System.err.println("left out: matrix multiply: " + notInstalled.getMessage());
        }
    }

    private static boolean measure(JCudaProgram program, int rounds) {
        Map<DeviceMalloc, List<Double>> nanos = new EnumMap<>(DeviceMalloc.class);
        boolean right = true;
        for (int round = -2; round < rounds; round++) {
            for (DeviceMalloc memory : DeviceMalloc.values()) {
                long begin = System.nanoTime();
                for (int run = 0; run < RUNS_A_ROUND; run++) {
                    program.run(memory);
                }
                double taken = (double) (System.nanoTime() - begin) / RUNS_A_ROUND;
                right &= round != rounds - 1 || program.isRight();
                if (round >= 0) {
                    nanos.computeIfAbsent(memory, _ -> new ArrayList<>()).add(taken);
                }
            }
        }
        double before = median(nanos.getOrDefault(DeviceMalloc.JCUDA, List.of()));
        for (DeviceMalloc memory : DeviceMalloc.values()) {
            double taken = median(nanos.getOrDefault(memory, List.of()));
            System.out.printf(
                    Locale.ROOT,
                    "{\"measured\":\"JCuda: %s\",\"allocator\":\"%s\",\"rounds\":%d,\"micros\":%.1f,\"faster\":%.2f,"
                            + "\"right\":%b}%n",
                    program.name(),
                    memory == DeviceMalloc.JCUDA ? "cuMemAlloc" : "Cistern",
                    rounds,
                    taken / 1000,
                    before / taken,
                    right);
        }
        return right;
    }

    private static double median(List<Double> values) {
        return values.stream().sorted().toList().get(values.size() / 2);
    }
}
