package io.cistern.cli;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.stream.LongStream;

/// The threads of a case, each with its load: they begin each round together. One thread commands.
///
/// A round's time is that of threads which are all at it: who is done goes on beside the others, uncounted, and the
/// time is the one that makes the sum of all threads' rates. So a thread that lost its processor for a while counts
/// as one, as in JMH, and not for all.
final class BenchTeam implements AutoCloseable {
    /// Work that a stream piles up is waited for after so many pairs, which is no part of them.
    private static final int PAIRS_A_WAIT = 1 << 14;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final List<ExecutorService> threads = new ArrayList<>();
    private final List<Member> members;

    /// A thread's part.
    ///
    /// @param load what it does
    /// @param await waits until its stream is done
    record Member(BenchLoad load, Runnable await) {}

    /// A round.
    ///
    /// @param nanos what it takes a thread while all are at it
    /// @param garbageBytes of the Java heap that all threads took meanwhile
    record Round(long nanos, long garbageBytes) {}

    BenchTeam(List<Member> members) {
        this.members = List.copyOf(members);
        for (int i = 0; i < members.size(); i++) {
            threads.add(Executors.newSingleThreadExecutor(
                    Thread.ofPlatform().daemon().name("bench-", i).factory()));
        }
    }

    /// Each thread allocates what it keeps.
    void begin() {
        each(member -> () -> {
            member.load().begin();
            return true;
        });
    }

    /// Each thread makes so many pairs.
    Round run(int pairs) {
        CyclicBarrier start = new CyclicBarrier(members.size());
        CountDownLatch busy = new CountDownLatch(members.size());
        List<Round> parts = each(member -> () -> {
            start.await();
            Round part;
            try {
                part = run(member, pairs);
            } finally {
                busy.countDown();
            }
            keepCompany(member, Math.min(pairs, PAIRS_A_WAIT), busy);
            return part;
        });
        double roundsANano = parts.stream()
                .mapToDouble(part -> 1.0 / Math.max(1, part.nanos()))
                .sum();
        return new Round(
                Math.round(members.size() / roundsANano),
                parts.stream().mapToLong(Round::garbageBytes).sum());
    }

    private static Round run(Member member, int pairs) {
        long nanos = 0;
        long garbageBytes = 0;
        for (int left = pairs; left > 0; left -= PAIRS_A_WAIT) {
            long bytesBefore = THREADS.getCurrentThreadAllocatedBytes();
            long begin = System.nanoTime();
            member.load().run(Math.min(left, PAIRS_A_WAIT));
            nanos += System.nanoTime() - begin;
            garbageBytes += THREADS.getCurrentThreadAllocatedBytes() - bytesBefore;
            member.await().run();
        }
        return new Round(nanos, garbageBytes);
    }

    private static void keepCompany(Member member, int pairs, CountDownLatch busy) {
        while (busy.getCount() > 0
                && member.load().standsAlone()
                && !Thread.currentThread().isInterrupted()) {
            run(member, pairs);
        }
    }

    /// What each pair of each thread took, in no order.
    long[] time(int pairs) {
        CyclicBarrier start = new CyclicBarrier(members.size());
        List<long[]> taken = each(member -> () -> {
            long[] nanos = new long[pairs];
            start.await();
            member.load().time(nanos);
            member.await().run();
            return nanos;
        });
        return taken.stream().flatMapToLong(LongStream::of).toArray();
    }

    /// Each thread frees what it kept.
    void end() {
        each(member -> () -> {
            member.load().end();
            member.await().run();
            return true;
        });
    }

    /// Lets each thread do its task; what fails first is thrown, even if others wait for that thread.
    private <T> List<T> each(Function<Member, Callable<T>> task) {
        CompletableFuture<T> failed = new CompletableFuture<>();
        List<CompletableFuture<T>> running = new ArrayList<>();
        for (int i = 0; i < members.size(); i++) {
            Callable<T> own = task.apply(members.get(i));
            running.add(CompletableFuture.supplyAsync(() -> call(own), threads.get(i))
                    .whenComplete((_, e) -> {
                        if (e != null) {
                            failed.completeExceptionally(e);
                        }
                    }));
        }
        try {
            CompletableFuture.anyOf(failed, CompletableFuture.allOf(running.toArray(CompletableFuture[]::new)))
                    .join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : e;
        }
        return running.stream().map(CompletableFuture::join).toList();
    }

    private static <T> T call(Callable<T> task) {
        try {
            return task.call();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException("a measured thread failed", e);
        }
    }

    /// Ends the threads, without waiting for one that hangs because another one failed.
    @Override
    public void close() {
        threads.forEach(ExecutorService::shutdownNow);
    }
}
