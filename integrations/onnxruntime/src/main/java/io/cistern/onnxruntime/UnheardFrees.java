package io.cistern.onnxruntime;

import java.util.function.LongConsumer;

/// Addresses of frees that there was no Java heap for. Adding one takes none.
///
/// **Threads.** Any; the lock is held for a few instructions.
final class UnheardFrees {
    private static final int MOST = 1024;

    private final long[] addresses = new long[MOST];
    private int count;

    /// Notes one; more than there is room for are lost.
    synchronized void add(long address) {
        if (count < MOST) {
            addresses[count++] = address;
        }
    }

    /// Hands over all that there are. One that the taker throws at stays.
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

    /// Returns 0 if there is none.
    private synchronized long take() {
        return count == 0 ? 0 : addresses[--count];
    }
}
