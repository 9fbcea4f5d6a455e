package io.cistern.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import java.util.BitSet;
import java.util.Map;
import java.util.WeakHashMap;

/// Numbers the device memories of each registry from 1, so that each has series of its own.
///
/// **Threads.** Any.
final class MemoryNumbers {
    /// By registry, the numbers that are taken, less 1.
    private static final Map<MeterRegistry, BitSet> TAKEN = new WeakHashMap<>();

    private MemoryNumbers() {}

    /// Takes the lowest free number.
    static synchronized int take(MeterRegistry registry) {
        BitSet taken = TAKEN.computeIfAbsent(registry, _ -> new BitSet());
        int free = taken.nextClearBit(0);
        taken.set(free);
        return free + 1;
    }

    static synchronized void giveBack(MeterRegistry registry, int number) {
        BitSet taken = TAKEN.get(registry);
        if (taken != null) {
            taken.clear(number - 1);
        }
    }
}
