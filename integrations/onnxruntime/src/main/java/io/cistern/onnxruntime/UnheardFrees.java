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

    /// Hands over all that there are. One for which the taker has no Java heap either stays.
    void takeAll(LongConsumer taker) {
        for (long address = last(); address != 0; address = last()) {
            taker.accept(address);
            drop();
        }
    }

    private synchronized long last() {
        return count == 0 ? 0 : addresses[count - 1];
    }

    private synchronized void drop() {
        count--;
    }
}
