package io.cistern.onnxruntime;

import java.util.function.LongConsumer;

/// Remembers addresses whose free found the Java heap full. Adding an address needs no Java heap.
///
/// **Threads.** Any; the lock is held for a few instructions.
final class UnheardFrees {
    private static final int MOST = 1024;

    private final long[] addresses = new long[MOST];
    private int count;

    /// Adds an address. If the array is full, the address is lost.
    synchronized void add(long address) {
        if (count < MOST) {
            addresses[count++] = address;
        }
    }

    /// Passes all addresses to the taker. If the taker throws, its address stays.
    void takeAll(LongConsumer taker) {
        for (long address = take(); address != 0; address = take()) {
            try {
                taker.accept(address);
            } catch (Throwable failure) {
                add(address);
                throw failure;
            }
        }
    }

    /// Returns an address; 0 if there are none.
    private synchronized long take() {
        return count == 0 ? 0 : addresses[--count];
    }
}
