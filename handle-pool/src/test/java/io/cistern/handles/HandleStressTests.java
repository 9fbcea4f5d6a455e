package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.CudaStream;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Threads of both kinds that come and go, streams that end, workspaces that are given back and handles that are
/// trimmed, all at once: no handle is ever used by two threads, nor after its end, nor on another stream.
@Timeout(120)
final class HandleStressTests {
    private static final int THREADS = 16;
    private static final int LIVES = 40;
    private static final int CALLS = 60;

    private final HandlePoolFixture fixture = new HandlePoolFixture();
    private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

    @AfterEach
    void nothingIsLeft() {
        fixture.close();
    }

    @ParameterizedTest
    @EnumSource(HandleStrategy.class)
    void aHandleIsNeverUsedByTwoThreads(HandleStrategy strategy) throws InterruptedException {
        fixture.library.workspaceBytes = 1 << 20;
        var pool = fixture.open(HandlePoolOptions.DEFAULT
                .withStrategy(strategy)
                .withMaxHandles(2 * THREADS)
                .withIdleAge(Duration.ofMillis(2)));
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            long seed = 31L * i;
            threads.add(Thread.ofPlatform().start(() -> live(pool, new Random(seed))));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failures).isEmpty();
        pool.close();
        HandlePoolStatistics counted = pool.statistics(0);
        assertThat(counted.alive()).isZero();
        assertThat(counted.created()).isEqualTo(counted.destroyed());
        assertThat(counted.workspaceBytes()).isZero();
        assertThat(fixture.liveBlocks()).isZero();
    }

    /// Has threads live and die, one after the other.
    private void live(HandlePool<CheckedLibrary.Handle> pool, Random random) {
        for (int life = 0; life < LIVES; life++) {
            boolean virtual = random.nextInt(3) == 0;
            long seed = random.nextLong();
            Thread.Builder kind = virtual ? Thread.ofVirtual() : Thread.ofPlatform();
            Thread thread = kind.start(() -> work(pool, virtual, new Random(seed)));
            try {
                thread.join();
            } catch (InterruptedException e) {
                failures.add(e);
            }
        }
    }

    private void work(HandlePool<CheckedLibrary.Handle> pool, boolean virtual, Random random) {
        try (CudaStream stream = CudaStream.open(fixture.memory, 0);
                CudaStream other = CudaStream.open(fixture.memory, 0)) {
            if (virtual) {
                try (var _ = pool.lease(0)) {
                    calls(pool, random, stream.handle(), other.handle());
                }
            } else {
                calls(pool, random, stream.handle(), other.handle());
            }
        } catch (HandleException refusedTwice) {
            assertThat(refusedTwice).hasMessageContaining("NOT_INITIALIZED");
        } catch (Throwable failure) {
            failures.add(failure);
        }
    }

    /// Asks for more than there is, which takes the workspaces of streams that are not set.
    private void runOutOfMemory(long stream) {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> fixture.memory.allocate(1L << 40, 0, stream));
    }

    private void calls(HandlePool<CheckedLibrary.Handle> pool, Random random, long stream, long other) {
        for (int call = 0; call < CALLS; call++) {
            long mine = random.nextBoolean() ? stream : other;
            pool.handle(0, mine).use(mine);
            switch (random.nextInt(60)) {
                case 0 -> pool.trim(0, Duration.ZERO);
                case 1 -> runOutOfMemory(mine);
                case 2 -> fixture.library.refusals.set(1);
                case 3 -> fixture.memory.streamClosing(0, fixture.other);
                default -> {}
            }
        }
    }
}
