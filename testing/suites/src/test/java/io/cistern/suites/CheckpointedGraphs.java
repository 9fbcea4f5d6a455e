package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.UnknownAddressException;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Graphs that share memory; several of them may follow the same graph. `direct` stands for all allocators that
/// know nothing of graphs.
@Timeout(120) // on the test's own thread, which must end its captures
public abstract class CheckpointedGraphs extends GraphFixture {
    private static final String CACHING = "caching";
    private static final String SEGMENTS = "caching:source=linear";
    private static final String ASYNC = "async";
    private static final String DIRECT = "direct";

    private final GraphMemory shared = GraphMemory.of(memory);

    /// Runs the tests on a driver, and closes it after the test.
    protected CheckpointedGraphs(CudaDriver driver) {
        super(driver);
    }

    /// Returns the driver on which the tests run.
    protected final CudaDriver driver() {
        return driver;
    }

    /// A block that a graph writes and does not free.
    private record Result(long executable, long address) {}

    private Result captureResult(int first) {
        GraphCapture capture = capture(shared);
        long scratch = allocate(2 * MIB);
        write(scratch, 2 * MIB, first + 1, stream);
        long address = allocate(MIB);
        write(address, MIB, first, stream);
        memory.free(scratch, stream);
        return new Result(executable(capture), address);
    }

    /// Captures work in blocks that the capture frees again.
    private List<Long> captureScratch(GraphMemory into, int blocks) {
        GraphCapture capture = capture(into);
        List<Long> scratch = new ArrayList<>();
        for (int i = 0; i < blocks; i++) {
            scratch.add(allocate(MIB));
            write(scratch.getLast(), MIB, 100 + i, stream);
        }
        scratch.forEach(each -> memory.free(each, stream));
        launch(executable(capture));
        return scratch;
    }

    private void free(long address) {
        memory.free(address, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void eachGraphThatMayFollowFindsTheResultOfTheFirstInItsPlace(String spec) {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        try (GraphMemory.Checkpoint checkpoint = shared.checkpoint()) {
            for (int i = 0; i < 3; i++) {
                launch(first.executable);
                assertHolds(first.address, MIB, 7);
                free(first.address);
                assertThat(checkpoint.restore()).containsExactly(first.address);
                assertThat(captureScratch(shared, 4)).doesNotContain(first.address);
                assertHolds(first.address, MIB, 7);
            }
        }
        free(first.address);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aBlockFreedOnAnEndedStreamInTheNextCaptureIsRestored(String spec) {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        CudaStream ended = CudaStream.open(memory, DEVICE);
        long handle = ended.handle();
        ended.close();
        try (GraphMemory.Checkpoint checkpoint = shared.checkpoint()) {
            GraphCapture capture = capture(shared);
            memory.free(first.address, handle);
            executable(capture);
            assertThat(checkpoint.restore()).containsExactly(first.address);
        }
        free(first.address);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aBlockThatIsFreedInTheNextCaptureIsRestoredToo(String spec) {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        try (GraphMemory.Checkpoint checkpoint = shared.checkpoint()) {
            GraphCapture capture = capture(shared);
            free(first.address);
            long later = allocate(MIB);
            assertThat(later).isNotEqualTo(first.address);
            write(later, MIB, 50, stream);
            free(later);
            long second = executable(capture);
            assertThat(checkpoint.restore()).containsExactly(first.address);
            launch(first.executable);
            launch(second);
            assertHolds(first.address, MIB, 7);
        }
        free(first.address);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS})
    void whatIsNotNotedIsFreeForEachGraphThatMayFollow(String spec) {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        try (GraphMemory.Checkpoint checkpoint = shared.checkpoint()) {
            GraphCapture capture = capture(shared);
            long second = allocate(4 * MIB);
            launch(executable(capture));
            free(second);
            free(first.address);
            long reserved = shared.reservedBytes(DEVICE);
            for (int i = 0; i < 3; i++) {
                checkpoint.restore();
                GraphCapture next = capture(shared);
                assertThat(allocate(4 * MIB)).isEqualTo(second);
                free(second);
                executable(next);
                assertThat(shared.reservedBytes(DEVICE)).isEqualTo(reserved);
            }
        }
        free(first.address);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void blocksThatAreStillAliveStayAlive(String spec) {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        Result second = captureResult(9);
        try (GraphMemory.Checkpoint checkpoint = shared.checkpoint()) {
            assertThat(checkpoint.restore()).isEmpty();
            free(second.address);
            assertThat(checkpoint.restore()).containsExactly(second.address);
            assertThat(memory.ownerOf(second.address)).isEqualTo(memory.ownerOf(first.address));
        }
        free(first.address);
        free(second.address);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS})
    void aNotedBlockServesOthersOnceNoCheckpointThatNotedItIsOpen(String spec) {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        GraphMemory.Checkpoint one = shared.checkpoint();
        GraphMemory.Checkpoint two = shared.checkpoint();
        free(first.address);
        one.close();
        assertThat(captureScratch(shared, 30)).doesNotContain(first.address);
        try (GraphCapture _ = capture()) {
            two.close();
        }
        assertThat(captureScratch(shared, 100)).contains(first.address); // not every allocation looks for it
        two.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aBlockThatIsFreeInACheckpointIsNoLeakAndCanNotBeFreedTwice(String spec) {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        try (GraphMemory.Checkpoint checkpoint = shared.checkpoint()) {
            free(first.address);
            assertThat(memory.liveBlocks()).extracting(LiveBlock::address).doesNotContain(first.address);
            assertThatThrownBy(() -> free(first.address)).isInstanceOf(UnknownAddressException.class);
            checkpoint.restore();
            assertThat(memory.liveBlocks()).extracting(LiveBlock::address).contains(first.address);
            free(first.address);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void allGoesWithTheGraphsThoughACheckpointIsOpen(String spec) throws InterruptedException {
        Allocator allocator = memory.setCurrent(spec);
        Result first = captureResult(7);
        Result second = captureResult(9);
        GraphMemory.Checkpoint checkpoint = shared.checkpoint();
        free(first.address);
        free(second.address);
        checkpoint.restore();
        free(first.address);
        launch(first.executable);
        driver.streams().synchronize(DEVICE, stream);
        destroy(first.executable);
        destroy(second.executable);
        awaitGone(shared);
        assertThatIllegalStateException().isThrownBy(checkpoint::restore).withMessageContaining("no longer exist");
        assertThatIllegalStateException().isThrownBy(shared::checkpoint).withMessageContaining("no longer exist");
        free(second.address);
        checkpoint.close();
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
        assertThat(memory.allocators()).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void blocksOfLaterCapturesAreToBeFreedBeforeARestore(String spec) {
        memory.setCurrent(spec);
        try (GraphMemory.Checkpoint nothing = shared.checkpoint()) {
            Result first = captureResult(7);
            assertThatIllegalStateException()
                    .isThrownBy(nothing::restore)
                    .withMessageContaining("live blocks of this memory that are not in the checkpoint: 1");
            launch(first.executable);
            assertHolds(first.address, MIB, 7);
            free(first.address);
            assertThat(nothing.restore()).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aBlockThatAnotherGraphKeepsIsRestoredWhenThatGraphIsGone(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        Result first = captureResult(7);
        GraphMemory others = GraphMemory.of(memory);
        try (GraphMemory.Checkpoint checkpoint = shared.checkpoint()) {
            GraphCapture capture = capture(others);
            free(first.address);
            long graph = capture.end();
            assertThatIllegalStateException()
                    .isThrownBy(checkpoint::restore)
                    .withMessageContaining("kept for other graphs");
            graphs.destroy(DEVICE, graph);
            awaitGone(others);
            assertThat(checkpoint.restore()).containsExactly(first.address);
        }
        free(first.address);
    }

    @Test
    void nothingIsNotedOrRestoredDuringACaptureOrAfterTheClose() {
        memory.setCurrent(CACHING);
        free(captureResult(7).address); // so that the memory outlives the next capture
        GraphMemory.Checkpoint checkpoint = shared.checkpoint();
        try (GraphCapture _ = capture(shared)) {
            assertThatIllegalStateException()
                    .isThrownBy(shared::checkpoint)
                    .withMessageContaining("end the capture first");
            assertThatIllegalStateException()
                    .isThrownBy(checkpoint::restore)
                    .withMessageContaining("end the capture first");
        }
        checkpoint.close();
        assertThatIllegalStateException().isThrownBy(checkpoint::restore).withMessageContaining("closed");
    }
}
