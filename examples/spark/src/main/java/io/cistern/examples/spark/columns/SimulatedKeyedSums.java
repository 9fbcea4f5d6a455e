package io.cistern.examples.spark.columns;

import io.cistern.simulated.KernelLaunch;
import io.cistern.simulated.Kernels;
import io.cistern.simulated.SimulatedKernel;
import io.cistern.simulated.SimulatedKernels;

/// Implements the kernels of [KeyedSums] in Java, for executors without a GPU. Their duration follows from the
/// bytes that they read and write and the bandwidth of an H200.
public final class SimulatedKeyedSums implements SimulatedKernels {
    private static final long LAUNCH_NANOS = 2_000;
    private static final double BYTES_A_NANO = 4_000;

    /// For [java.util.ServiceLoader].
    public SimulatedKeyedSums() {}

    @Override
    public void register(Kernels kernels) {
        kernels.register(KeyedSumKernels.FILTER, timed(5, 32, SimulatedKeyedSums::filter));
        kernels.register(KeyedSumKernels.AGGREGATE, timed(3, 48, SimulatedKeyedSums::aggregate));
        kernels.register(KeyedSumKernels.COMPACT, timed(3, 48, SimulatedKeyedSums::compact));
        kernels.register(KeyedSumKernels.SORT_STEP, timed(3, 48, SimulatedKeyedSums::sortStep));
        kernels.register(KeyedSumKernels.FILL_LONGS, timed(1, 8, SimulatedKeyedSums::fillLongs));
    }

    /// @param countAt the index of the argument that has the number of items
    /// @param bytesEach the bytes that an item reads and writes
    private static SimulatedKernel timed(int countAt, int bytesEach, SimulatedKernel kernel) {
        return new SimulatedKernel() {
            @Override
            public void run(KernelLaunch launch) {
                kernel.run(launch);
            }

            @Override
            public long durationNanos(KernelLaunch launch) {
                return LAUNCH_NANOS + (long) (launch.longAt(countAt) * bytesEach / BYTES_A_NANO);
            }
        };
    }

    private static void filter(KernelLaunch launch) {
        int first = launch.intAt(4);
        int count = launch.intAt(5);
        Longs keys = Longs.read(launch, 0, first, count);
        Longs values = Longs.read(launch, 2, first, count);
        byte[] keyBits = bits(launch, 1, first + count);
        byte[] valueBits = bits(launch, 3, first + count);
        Longs outKeys = Longs.ofSize(count);
        Longs outValues = Longs.ofSize(count);
        int out = 0;
        for (int i = 0; i < count; i++) {
            boolean isValid = isSet(keyBits, first + i) && isSet(valueBits, first + i);
            if (isValid && values.get(i) >= launch.longAt(6)) {
                outKeys.set(out, keys.get(i));
                outValues.set(out++, values.get(i));
            }
        }
        outKeys.write(launch, 7, out);
        outValues.write(launch, 8, out);
        launch.memory().writeLong(launch.longAt(9), out);
    }

    private static byte[] bits(KernelLaunch launch, int argument, int count) {
        return launch.memory().read(launch.longAt(argument), (count + 7) / 8);
    }

    private static boolean isSet(byte[] bits, int index) {
        return (bits[index / 8] >> index % 8 & 1) != 0;
    }

    private static void aggregate(KernelLaunch launch) {
        int count = launch.intAt(3);
        int capacity = launch.intAt(7);
        long freeKey = launch.longAt(8);
        Longs keys = Longs.read(launch, 0, 0, count);
        Longs values = Longs.read(launch, 1, 0, count);
        Longs counts = launch.longAt(2) == 0 ? Longs.ofSize(0) : Longs.read(launch, 2, 0, count);
        GroupTable table = GroupTable.read(launch, capacity, freeKey);
        for (int i = 0; i < count; i++) {
            table.add(keys.get(i), values.get(i), counts.size() == 0 ? 1 : counts.get(i));
        }
        table.write(launch);
        launch.memory().writeLong(launch.longAt(9), launch.memory().readLong(launch.longAt(9)) + table.newGroups());
    }

    private static void compact(KernelLaunch launch) {
        int slots = launch.intAt(3);
        Longs counts = Longs.read(launch, 2, 0, slots);
        int out = 0;
        for (int column = 0; column < 3; column++) {
            Longs from = Longs.read(launch, column, 0, slots);
            Longs to = Longs.ofSize(slots);
            out = 0;
            for (int i = 0; i < slots; i++) {
                if (counts.get(i) > 0) {
                    to.set(out++, from.get(i));
                }
            }
            to.write(launch, 4 + column, out);
        }
        launch.memory().writeLong(launch.longAt(7), out);
    }

    private static void sortStep(KernelLaunch launch) {
        int count = launch.intAt(3);
        int distance = launch.intAt(4);
        Longs[] columns = {
            Longs.read(launch, 0, 0, count), Longs.read(launch, 1, 0, count), Longs.read(launch, 2, 0, count)
        };
        for (int i = 0; i < count; i++) {
            int other = i ^ distance;
            boolean isUpward = (i & launch.longAt(5)) == 0;
            if (other > i && (isUpward ? isAfter(columns, i, other) : isAfter(columns, other, i))) {
                for (Longs column : columns) {
                    column.swap(i, other);
                }
            }
        }
        for (int column = 0; column < columns.length; column++) {
            columns[column].write(launch, column, count);
        }
    }

    /// Returns whether row i comes after another. Rows of count 0 come after all others.
    private static boolean isAfter(Longs[] columns, int i, int other) {
        boolean otherIsThere = columns[2].get(other) != 0;
        return otherIsThere && (columns[2].get(i) == 0 || columns[0].get(i) > columns[0].get(other));
    }

    private static void fillLongs(KernelLaunch launch) {
        Longs filled = Longs.ofSize(launch.intAt(1));
        for (int i = 0; i < filled.size(); i++) {
            filled.set(i, launch.longAt(2));
        }
        filled.write(launch, 0, filled.size());
    }
}
