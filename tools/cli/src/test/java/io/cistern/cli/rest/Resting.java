package io.cistern.cli.rest;

import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// How a program's threads hold still while live memory moves. Each thread holds a lock while it works, also while
/// it allocates.
enum Resting {
    NEVER {
        @Override
        Rules rules(int threads) {
            return new Rules(
                    null,
                    Stream.<Lock>generate(ReentrantLock::new).limit(threads).toList());
        }
    },
    BY_ONE_LOCK {
        @Override
        Rules rules(int threads) {
            ReentrantReadWriteLock work = new ReentrantReadWriteLock();
            return new Rules(
                    WorkPause.of(work),
                    Stream.<Lock>generate(work::readLock).limit(threads).toList());
        }
    },
    BY_A_LOCK_OF_EACH_THREAD {
        @Override
        Rules rules(int threads) {
            List<ReentrantLock> locks =
                    Stream.generate(ReentrantLock::new).limit(threads).toList();
            return new Rules(new AllLocks(locks), List.copyOf(locks));
        }
    };

    /// @param pause null if the program registers none
    /// @param locks what each thread holds while it works
    record Rules(@Nullable WorkPause pause, List<Lock> locks) {
        void work(int thread, Runnable work) {
            locks.get(thread).lock();
            try {
                work.run();
            } finally {
                locks.get(thread).unlock();
            }
        }
    }

    abstract Rules rules(int threads);

    /// Takes the locks of all threads. Two of them that did so at once would wait for each other.
    private record AllLocks(List<ReentrantLock> locks) implements WorkPause {
        @Override
        public Optional<Registration> begin(int device, Duration atMost) {
            long deadline = System.nanoTime() + atMost.toNanos();
            for (int i = 0; i < locks.size(); i++) {
                if (!isTaken(locks.get(i), deadline)) {
                    release(i);
                    return Optional.empty();
                }
            }
            return Optional.of(() -> release(locks.size()));
        }

        private static boolean isTaken(Lock lock, long deadline) {
            try {
                return lock.tryLock(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        private void release(int count) {
            locks.subList(0, count).forEach(Lock::unlock);
        }

        @Override
        public Registration rest() {
            List<ReentrantLock> held =
                    locks.stream().filter(ReentrantLock::isHeldByCurrentThread).toList();
            held.forEach(Lock::unlock);
            return () -> held.forEach(Lock::lock);
        }
    }
}
