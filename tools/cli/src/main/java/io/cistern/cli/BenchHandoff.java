package io.cistern.cli;

import io.cistern.DeviceMemory;

/// The loads of two threads, of which one allocates blocks and the other one frees them, through the public raw
/// calls.
final class BenchHandoff {
    private final BenchQueue queue = new BenchQueue();

    /// Waits for the other one where that is behind.
    private abstract static class Half implements BenchLoad {
        /// In the queue.
        long position;

        @Override
        public boolean standsAlone() {
            return false;
        }
    }

    /// The thread that allocates.
    BenchLoad producer(DeviceMemory memory, int device, long stream, BenchSizes sizes) {
        return new Half() {
            @Override
            public void run(int pairs) {
                for (int i = 0; i < pairs; i++) {
                    queue.put(position++, memory.allocate(sizes.next(), device, stream));
                }
            }

            @Override
            public void time(long[] nanos) {
                for (int i = 0; i < nanos.length; i++) {
                    long begin = System.nanoTime();
                    long block = memory.allocate(sizes.next(), device, stream);
                    nanos[i] = System.nanoTime() - begin;
                    queue.put(position++, block);
                }
            }
        };
    }

    /// The thread that frees.
    BenchLoad consumer(DeviceMemory memory, long stream) {
        return new Half() {
            @Override
            public void run(int pairs) {
                for (int i = 0; i < pairs; i++) {
                    memory.free(queue.take(position++), stream);
                }
            }

            @Override
            public void time(long[] nanos) {
                for (int i = 0; i < nanos.length; i++) {
                    long block = queue.take(position++);
                    long begin = System.nanoTime();
                    memory.free(block, stream);
                    nanos[i] = System.nanoTime() - begin;
                }
            }
        };
    }

    /// A thread that puts numbers, to see what the queue itself costs.
    BenchLoad putter(BenchSizes sizes) {
        return new Half() {
            @Override
            public void run(int pairs) {
                for (int i = 0; i < pairs; i++) {
                    queue.put(position++, sizes.next());
                }
            }

            @Override
            public void time(long[] nanos) {
                run(nanos.length);
            }
        };
    }

    /// A thread that takes numbers.
    BenchLoad taker() {
        return new Half() {
            @Override
            public void run(int pairs) {
                for (int i = 0; i < pairs; i++) {
                    queue.take(position++);
                }
            }

            @Override
            public void time(long[] nanos) {
                run(nanos.length);
            }
        };
    }
}
