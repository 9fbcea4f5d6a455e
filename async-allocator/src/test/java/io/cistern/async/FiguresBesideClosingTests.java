package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.MemoryPools;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import java.lang.Thread.State;
import java.lang.reflect.InvocationTargetException;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.mockito.invocation.InvocationOnMock;

/// An allocator that another thread closes just when a call on a pool is about to be made, whichever call that
/// is.
final class FiguresBesideClosingTests {
    private static final long MIB = 1 << 20;
    private static final int MAX_CALLS = 24;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final MemoryPools pools = mock(MemoryPools.class, delegatesTo(gpu.pools()));
    private final CudaDriver driver = mock(CudaDriver.class, delegatesTo(gpu));

    private final long freeBytes = gpu.memory().freeBytes(0);

    private AsyncAllocator async;
    private Thread closing;
    private int callsUntilClose;

    private enum Asked {
        RESERVED(async -> async.reservedBytes(0)),
        PEAK(async -> async.reservedPeakBytes(0)),
        STATISTICS(async -> async.statistics(0)),
        RESET(async -> async.resetPeaks(0)),
        TRIM(async -> async.trim(0, 0)),
        TRIM_AND_TELL(async -> async.trim(0, 0, TrimMode.SYNCHRONIZE));

        private final Consumer<AsyncAllocator> question;

        Asked(Consumer<AsyncAllocator> question) {
            this.question = question;
        }
    }

    FiguresBesideClosingTests() {
        doAnswer(_ -> pools).when(driver).pools();
        doAnswer(this::closeFirst).when(pools).attribute(anyInt(), anyLong(), any());
        doAnswer(this::closeFirst).when(pools).setAttribute(anyInt(), anyLong(), any(), anyLong());
        doAnswer(this::closeFirst).when(pools).trimTo(anyInt(), anyLong(), anyLong());
    }

    @AfterEach
    void noCallReachedADestroyedPool() {
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
        gpu.close();
    }

    /// Goes on when the other thread has closed the allocator, or waits for this call.
    private Object closeFirst(InvocationOnMock call) throws Throwable {
        if (closing.getState() == State.NEW && --callsUntilClose < 0) {
            closing.start();
            while (closing.getState() != State.BLOCKED && closing.isAlive()) {
                Thread.onSpinWait();
            }
        }
        try {
            return call.getMethod().invoke(gpu.pools(), call.getArguments());
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
    }

    @ParameterizedTest
    @EnumSource(Asked.class)
    void everyCallComesBeforeTheEndOfThePoolOrIsNone(Asked asked) throws InterruptedException {
        for (AsyncOptions options : new AsyncOptions[] {AsyncOptions.USUAL, adaptive()}) {
            for (int calls = 0; calls < MAX_CALLS; calls++) {
                askWhileClosing(options, asked, calls);
            }
        }
    }

    private static AsyncOptions adaptive() {
        return AsyncOptions.USUAL.withThreshold(new ReleaseThreshold.Adaptive());
    }

    private void askWhileClosing(AsyncOptions options, Asked asked, int calls) throws InterruptedException {
        callsUntilClose = Integer.MAX_VALUE;
        async = AsyncFixture.async(driver, 1, options, mock(StreamOrder.class));
        closing = new Thread(async::close);
        async.free(async.allocate(MIB, 0, 0), MIB, 0, 0);
        callsUntilClose = calls;
        asked.question.accept(async);
        if (closing.getState() == State.NEW) {
            async.close();
        } else {
            closing.join();
        }
        asked.question.accept(async); // also of one that is closed
    }
}
