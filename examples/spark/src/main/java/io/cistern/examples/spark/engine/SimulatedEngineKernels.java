package io.cistern.examples.spark.engine;

import io.cistern.cuda.LinearMemory.AddressRange;
import io.cistern.examples.spark.engine.KernelArguments.Parameter;
import io.cistern.simulated.KernelLaunch;
import io.cistern.simulated.Kernels;
import io.cistern.simulated.SimulatedKernel;
import io.cistern.simulated.SimulatedKernels;
import java.util.List;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/// Implements the kernels of [Operators] in Java, for machines without a GPU. Their duration follows from
/// the bytes that they read and write and the bandwidth of an H200.
public final class SimulatedEngineKernels implements SimulatedKernels {
    private static final long LAUNCH_NANOS = 2_000;
    private static final double BYTES_A_NANO = 4_000;

    /// All kernels, by the name, parameters and order of arguments that they have in CUDA C++.
    static final List<Kernel> KERNELS = List.of(
            kernel("cistern_draw", "v v v v v v r8:0 w8:0", SimulatedEngineKernels::draw),
            kernel("cistern_word_lengths", "r1:1 v v v v v v w8:2", SimulatedEngineKernels::wordLengths),
            kernel("cistern_write_words", "r1:1 v v v v v v r8:2+1 v w1:8", SimulatedEngineKernels::writeWords),
            kernel("cistern_fill", "v v w8:0", each(0, (k, i) -> k.set(2, i, k.number(1)))),
            kernel("cistern_positions", "v v w8:0", each(0, (k, i) -> k.set(2, i, i < k.number(1) ? i : -1))),
            kernel("cistern_between", "r8:1 v v v v r1:1 w1:1", each(1, (k, i) -> {
                boolean isWithin = k.get(0, i) >= k.number(2) && k.get(0, i) <= k.number(3);
                flag(k, 5, 6, i, isWithin == (k.number(4) != 0));
            })),
            kernel("cistern_valid", "r1:1 v v v r1:3 w1:3", each(3, (k, i) -> {
                long bit = k.number(2) + i;
                flag(k, 4, 5, i, ((k.getByte(0, bit >> 3) >> (bit & 7)) & 1) != 0);
            })),
            kernel("cistern_like", "r8:2+1 r1:3 v v r1:5 v v r1:2 w1:2", SimulatedEngineKernels::like),
            kernel("cistern_scan", "r1:2 r8:2 v v w8:2+1 w8:3", SimulatedEngineKernels::scan),
            kernel(
                    "cistern_scan_add",
                    "r8:1 v v x8:2",
                    each(2, (k, i) -> k.set(3, i, k.get(3, i) + k.get(0, i / Operators.TILE)))),
            kernel("cistern_select", "r1:2 r8:2 v v w8:3", each(2, (k, i) -> {
                if (k.getByte(0, i) != 0) {
                    k.set(4, k.get(1, i), i);
                }
            })),
            kernel(
                    "cistern_gather",
                    "r8:1 v r8:3 v v w8:3",
                    each(3, (k, i) -> k.set(5, i, k.get(2, i) < 0 ? k.number(4) : k.get(0, k.get(2, i))))),
            kernel("cistern_calculate", "v r8:4 r8:4 v v w8:4", each(4, SimulatedEngineKernels::calculate)),
            kernel("cistern_insert", "r8:1 v v v x8:2+1 w8:1", each(1, SimulatedEngineKernels::insert)),
            kernel("cistern_scatter", "r8:1 v v x8:2", each(1, (k, i) -> k.set(3, k.get(0, i), i))),
            kernel(
                    "cistern_probe",
                    "r8:1 v v v r8:2+1 r8:2+1 w8:1",
                    each(1, (k, i) -> k.set(6, i, k.get(5, slot(k, k.get(0, i), 4))))),
            kernel("cistern_sum", "r8:2 r8:2 v v x8:3", each(2, SimulatedEngineKernels::sum)),
            kernel("cistern_sum_few", "r8:2 r8:2 v v x8:3", each(2, SimulatedEngineKernels::sum)),
            kernel("cistern_sort_step", "x8:2 x8:2 v v v", each(2, SimulatedEngineKernels::sortStep)),
            kernel("cistern_hash_strings", "r8:2+1 r1:3 v v w8:2", each(2, SimulatedEngineKernels::hash)),
            kernel(
                    "cistern_string_lengths",
                    "r8:1+1 v r8:3 v w8:3",
                    each(3, (k, i) -> k.set(4, i, k.get(0, k.get(2, i) + 1) - k.get(0, k.get(2, i))))),
            kernel(
                    "cistern_copy_strings",
                    "r8:2+1 r1:3 v v r8:5 v r8:5+1 v w1:7",
                    SimulatedEngineKernels::copyStrings));

    private static Kernel kernel(String name, String parameters, Consumer<KernelArguments> work) {
        return new Kernel(name, Parameter.parse(parameters), work);
    }

    /// A kernel, and what it does in Java.
    record Kernel(String name, List<Parameter> parameters, Consumer<KernelArguments> work) {
        /// Returns the kernel as a simulated device runs it, with this or other code.
        SimulatedKernel simulated(Consumer<KernelArguments> code) {
            return new SimulatedKernel() {
                @Override
                public void run(KernelLaunch launch) {
                    KernelArguments arguments = new KernelArguments(parameters, launch);
                    code.accept(arguments);
                    arguments.write();
                }

                @Override
                public long durationNanos(KernelLaunch launch) {
                    return LAUNCH_NANOS
                            + (long) (uses(launch).stream()
                                            .mapToLong(AddressRange::byteSize)
                                            .sum()
                                    / BYTES_A_NANO);
                }

                @Override
                public List<AddressRange> uses(KernelLaunch launch) {
                    return KernelArguments.ranges(parameters, launch);
                }
            };
        }
    }

    @FunctionalInterface
    private interface Item {
        void run(KernelArguments arguments, long index);
    }

    /// For [java.util.ServiceLoader].
    public SimulatedEngineKernels() {}

    @Override
    public void register(Kernels kernels) {
        for (Kernel each : KERNELS) {
            kernels.register(each.name(), each.simulated(each.work()));
        }
    }

    /// @param countAt the argument that has the number of items
    private static Consumer<KernelArguments> each(int countAt, Item item) {
        return arguments -> {
            for (long i = 0; i < arguments.number(countAt); i++) {
                item.run(arguments, i);
            }
        };
    }

    private static void flag(KernelArguments k, int before, int out, long i, boolean holds) {
        k.setByte(out, i, holds && (!k.has(before) || k.getByte(before, i) != 0) ? 1 : 0);
    }

    private static long drawn(long index, long salt, long range) {
        long x = (index * 2_654_435 + salt * 97) % 2_147_483_647L;
        return (x * x + salt) % 2_147_483_629L % range;
    }

    private static void draw(KernelArguments k) {
        for (long i = 0; i < k.number(0); i++) {
            long before = k.has(6) ? k.get(6, i) : 0;
            long index = (k.number(1) + i) / k.number(2);
            k.set(7, i, k.number(5) + drawn(index, k.number(3), k.number(4)) + before);
        }
    }

    private static void wordLengths(KernelArguments k) {
        for (long i = 0; i < k.number(2); i++) {
            long length = k.number(4) - 1;
            for (long at = 0; at < k.number(4); at++) {
                length += k.getByte(0, 16 * drawn(k.number(3) + i, k.number(6) + at, k.number(5)));
            }
            k.set(7, i, length);
        }
    }

    private static void writeWords(KernelArguments k) {
        for (long i = 0; i < k.number(2); i++) {
            long to = k.get(7, i);
            for (long at = 0; at < k.number(4); at++) {
                long from = 16 * drawn(k.number(3) + i, k.number(6) + at, k.number(5));
                if (at > 0) {
                    k.setByte(9, to++, ' ');
                }
                for (long letter = 1; letter <= k.getByte(0, from); letter++) {
                    k.setByte(9, to++, k.getByte(0, from + letter));
                }
            }
        }
    }

    private static void like(KernelArguments k) {
        List<String> parts = List.of(k.text(4, 0, k.number(5)).split("%", -1));
        Pattern regex = Pattern.compile(
                String.join(".*", parts.stream().map(Pattern::quote).toList()), Pattern.DOTALL);
        for (long i = 0; i < k.number(2); i++) {
            flag(
                    k,
                    7,
                    8,
                    i,
                    regex.matcher(k.text(1, k.get(0, i), k.get(0, i + 1))).matches() == (k.number(6) != 0));
        }
    }

    private static void scan(KernelArguments k) {
        for (long tile = 0; tile < k.number(3); tile++) {
            long sum = 0;
            for (long i = tile * Operators.TILE; i < (tile + 1) * Operators.TILE && i <= k.number(2); i++) {
                k.set(4, i, sum);
                sum += i == k.number(2) ? 0 : k.has(0) ? k.getByte(0, i) : k.get(1, i);
            }
            k.set(5, tile, sum);
        }
    }

    private static void calculate(KernelArguments k, long i) {
        long a = k.get(1, i);
        long b = k.has(2) ? k.get(2, i) : k.number(3);
        k.set(
                5,
                i,
                switch ((int) k.number(0)) {
                    case 0 -> a + b;
                    case 1 -> b - a;
                    case 2 -> a * b;
                    default -> a / b;
                });
    }

    /// Returns the slot of a key or, if the table lacks it, the free one where it belongs.
    private static long slot(KernelArguments k, long key, int tableKeys) {
        long capacity = k.number(2);
        long freeKey = k.number(3);
        if (key == freeKey) {
            return capacity;
        }
        long hash = key * 0x9E3779B97F4A7C15L;
        long slot = (hash ^ (hash >>> 32)) & (capacity - 1);
        while (k.get(tableKeys, slot) != freeKey && k.get(tableKeys, slot) != key) {
            slot = (slot + 1) & (capacity - 1);
        }
        return slot;
    }

    private static void insert(KernelArguments k, long i) {
        long slot = slot(k, k.get(0, i), 4);
        k.set(4, slot, k.get(0, i));
        k.set(5, i, slot);
    }

    private static void sum(KernelArguments k, long i) {
        long group = k.has(0) ? k.get(0, i) : 0;
        k.set(4, group, k.get(4, group) + (k.has(1) ? k.get(1, i) : 1));
    }

    private static void sortStep(KernelArguments k, long i) {
        long other = i ^ k.number(3);
        if (other > i && isAfter(k, i, other) == ((i & k.number(4)) == 0)) {
            for (int array = 0; array < 2; array++) {
                long value = k.get(array, i);
                k.set(array, i, k.get(array, other));
                k.set(array, other, value);
            }
        }
    }

    /// Returns whether row i comes after another. Rows of -1 come after all others.
    private static boolean isAfter(KernelArguments k, long i, long other) {
        long key = k.get(0, i);
        long otherKey = k.get(0, other);
        return k.get(1, other) >= 0
                && (k.get(1, i) < 0 || key > otherKey || (key == otherKey && k.get(1, i) > k.get(1, other)));
    }

    private static void hash(KernelArguments k, long i) {
        long hash = 0xCBF29CE484222325L;
        for (long at = k.get(0, i); at < k.get(0, i + 1); at++) {
            hash = (hash ^ (k.getByte(1, at) & 0xff)) * 0x100000001B3L;
        }
        k.set(4, i, hash);
    }

    private static void copyStrings(KernelArguments k) {
        for (long i = 0; i < k.number(5); i++) {
            long from = k.get(0, k.get(4, i));
            for (long at = 0; at < k.get(6, i + 1) - k.get(6, i); at++) {
                k.setByte(8, k.get(6, i) + at, k.getByte(1, from + at));
            }
        }
    }
}
