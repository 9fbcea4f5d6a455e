package io.cistern.async;

/// Lets the end of a stream wait for the frees under way: one may have found that the stream exists, and be
/// about to name it to the driver.
///
/// A free holds the lock of its thread, which hardly any other thread has. The end of a stream takes each
/// lock once: the free that holds it next finds that the stream has ended.
///
/// They are monitors because leaving one makes no call, so a stack overflow can't keep it locked.
///
/// **Threads.** Any.
final class FreesUnderWay {
    /// A power of two.
    private static final int COUNT = 64;

    /// With the header, more than a cache line, so that no two locks share one.
    private static final int LENGTH = 8;

    private final long[][] locks = new long[COUNT][LENGTH];

    /// Returns the lock that the calling thread holds during a free.
    Object lockOfThread() {
        return locks[(int) Thread.currentThread().threadId() & (COUNT - 1)];
    }

    /// Waits for the frees that began before this call.
    void await() {
        for (Object lock : locks) {
            synchronized (lock) {
                // The free that held it is over.
            }
        }
    }
}
