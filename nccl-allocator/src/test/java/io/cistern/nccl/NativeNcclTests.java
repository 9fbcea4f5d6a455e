package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.clearInvocations;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoMoreInteractions;

import io.cistern.cuda.Devices;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// What arrives at libnccl, and what comes back: each function with its arguments in their places, groups, data,
/// errors.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class NativeNcclTests {
    private static final long STREAM = 0x57;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private FakeNccl fake;
    private Nccl nccl;
    private List<Communicator> ranks;
    private Arena arena;

    @BeforeAll
    void compile(@TempDir Path folder) {
        fake = new FakeNccl(folder);
    }

    @BeforeEach
    void open() {
        arena = Arena.ofConfined();
        nccl = new Nccl(new NativeNccl(fake.library(), gpu.devices()));
        ranks = nccl.initAll(0, 1);
        fake.calls();
    }

    @AfterEach
    void close() {
        fake.fail("", 0);
        fake.lastError("");
        ranks.forEach(Communicator::close);
        arena.close();
        fake.calls();
    }

    private MemorySegment floats(float... values) {
        return arena.allocateFrom(ValueLayout.JAVA_FLOAT, values);
    }

    private static float[] read(MemorySegment memory) {
        return memory.toArray(ValueLayout.JAVA_FLOAT);
    }

    @Test
    void oneProcessMakesAllRanksAtOnce() {
        assertThat(ranks).extracting(Communicator::rank).containsExactly(0, 1);
        assertThat(ranks).extracting(Communicator::device).containsExactly(0, 1);
        List<Communicator> turned = nccl.initAll(1, 0);
        assertThat(fake.calls()).containsExactly("ncclCommInitAll(2, [1..0])");
        assertThat(turned).extracting(Communicator::device).containsExactly(1, 0);
        turned.forEach(Communicator::close);
    }

    @Test
    void anIdIsGivenByValue() {
        UniqueId id = nccl.uniqueId();
        assertThat(id.toBytes()).hasSize(128).startsWith(1, 2, 3).endsWith(127, -128);
        List<Communicator> made = nccl.initRanks(id, 2, 0, 0, 1);
        assertThat(fake.calls())
                .containsExactly(
                        "ncclGetUniqueId()",
                        "ncclGroupStart()",
                        "ncclCommInitRank(2, id of sum 8256, 0)",
                        "ncclCommInitRank(2, id of sum 8256, 1)",
                        "ncclGroupEnd()");
        made.forEach(Communicator::close);
    }

    @Test
    void allReduceAddsInOneGroup() {
        MemorySegment[] send = {floats(1, 2, 3), floats(10, 20, 30)};
        MemorySegment[] sum = {floats(0, 0, 0), floats(0, 0, 0)};
        nccl.group(() -> {
            for (int i = 0; i < 2; i++) {
                ranks.get(i)
                        .allReduce(
                                send[i].address(), sum[i].address(), 3, DataType.FLOAT32, ReductionOp.SUM, STREAM + i);
            }
        });
        assertThat(fake.calls())
                .containsExactly(
                        "ncclGroupStart()",
                        "ncclAllReduce(0, 3, 7, 0, 57)",
                        "ncclAllReduce(1, 3, 7, 0, 58)",
                        "ncclGroupEnd()");
        assertThat(read(sum[0])).containsExactly(11, 22, 33);
        assertThat(read(sum[1])).containsExactly(11, 22, 33);
    }

    @Test
    void aGroupChangesTheContextOnceAndNotForEachRank() {
        Devices devices = mock(Devices.class, delegatesTo(gpu.devices()));
        Nccl watched = new Nccl(new NativeNccl(fake.library(), devices));
        List<Communicator> two = watched.initAll(0, 1);
        long given = floats(1, 2, 3).address();
        clearInvocations(devices);
        watched.group(
                () -> two.forEach(rank -> rank.allReduce(given, given, 3, DataType.FLOAT32, ReductionOp.SUM, STREAM)));
        verify(devices).enterContext(0);
        verify(devices).leaveContext(eq(0), anyLong());
        verifyNoMoreInteractions(devices);
        watched.group(() -> two.forEach(rank -> rank.allReduce(given, given, 3, DataType.FLOAT32, ReductionOp.SUM, 0)));
        verify(devices).enterContext(1); // a default stream is one of the current context
        two.forEach(Communicator::close);
    }

    @Test
    void theAverageOfOneRankIsAskedForAsItsSum() {
        MemorySegment given = floats(1, 2, 3);
        Communicator alone = nccl.initAll(0).getFirst();
        fake.calls();
        alone.allReduce(given.address(), given.address(), 3, DataType.FLOAT8_E4M3, ReductionOp.AVERAGE, STREAM);
        assertThat(fake.calls()).containsExactly("ncclAllReduce(0, 3, 10, 0, 57)");
        alone.close();
    }

    @Test
    void everyCollectiveHasItsArgumentsInTheirPlaces() {
        long a = floats(1, 2, 3, 4).address();
        long b = floats(0, 0, 0, 0).address();
        Communicator rank = ranks.getFirst();
        nccl.group(() -> {
            rank.broadcast(a, b, 1, DataType.FLOAT64, 1, STREAM);
            rank.reduce(a, b, 2, DataType.INT8, ReductionOp.MAX, 1, STREAM);
            rank.allGather(a, b, 3, DataType.UINT32, STREAM);
            rank.reduceScatter(a, b, 4, DataType.FLOAT16, ReductionOp.AVERAGE, STREAM);
            rank.allToAll(a, b, 5, DataType.BFLOAT16, STREAM);
            rank.send(a, 6, DataType.UINT64, 1, STREAM);
            rank.receive(b, 7, DataType.INT64, 1, STREAM);
            rank.allReduce(a, b, 8, DataType.FLOAT8_E5M2, ReductionOp.PRODUCT, STREAM);
        });
        assertThat(fake.calls())
                .containsExactly(
                        "ncclGroupStart()",
                        "ncclBroadcast(0, 1, 8, 1, 57)",
                        "ncclReduce(0, 2, 0, 2, 1, 57)",
                        "ncclAllGather(0, 3, 3, 57)",
                        "ncclReduceScatter(0, 4, 6, 4, 57)",
                        "ncclAlltoAll(0, 5, 9, 57)",
                        "ncclSend(0, 6, 5, 1, 57)",
                        "ncclRecv(0, 7, 4, 1, 57)",
                        "ncclAllReduce(0, 8, 11, 1, 57)",
                        "ncclGroupEnd()");
    }

    @Test
    void dataMovesFromRankToRank() {
        MemorySegment[] given = {floats(1, 2), floats(3, 4)};
        MemorySegment[] got = {floats(0, 0, 0, 0), floats(0, 0, 0, 0)};
        nccl.group(() -> {
            for (int i = 0; i < 2; i++) {
                ranks.get(i).allGather(given[i].address(), got[i].address(), 2, DataType.FLOAT32, STREAM);
            }
        });
        assertThat(read(got[1])).containsExactly(1, 2, 3, 4);
        nccl.group(() -> {
            for (int i = 0; i < 2; i++) {
                ranks.get(i).receive(got[i].address(), 2, DataType.FLOAT32, 1 - i, STREAM);
                ranks.get(i).send(given[i].address(), 2, DataType.FLOAT32, 1 - i, STREAM);
            }
        });
        assertThat(read(got[0])).startsWith(3, 4);
        assertThat(read(got[1])).startsWith(1, 2);
    }

    @Test
    void aGroupInAGroupIsPartOfItAndABlockThatThrowsCallsNothing() {
        long a = floats(1).address();
        nccl.group(() -> {
            ranks.getFirst().send(a, 1, DataType.FLOAT32, 1, STREAM);
            nccl.group(() -> ranks.getLast().receive(a, 1, DataType.FLOAT32, 0, STREAM));
        });
        assertThat(fake.calls()).containsOnlyOnce("ncclGroupStart()").hasSize(4);
        assertThatThrownBy(() -> nccl.group(() -> {
                    ranks.getFirst().send(a, 1, DataType.FLOAT32, 1, STREAM);
                    throw new IllegalStateException("the block's own");
                }))
                .hasMessage("the block's own");
        assertThat(fake.calls()).isEmpty();
    }

    @Test
    void aFailureInTheMiddleOfAGroupEndsTheGroup() {
        long a = floats(1).address();
        fake.failAfter(1, "ncclSend", 4);
        assertThatThrownBy(() -> nccl.group(() -> {
                    for (int i = 0; i < 3; i++) {
                        ranks.getFirst().send(a, 1, DataType.FLOAT32, 1, STREAM);
                    }
                }))
                .asInstanceOf(type(NcclException.class))
                .returns(NcclResult.INVALID_ARGUMENT, NcclException::result)
                .returns("ncclSend", NcclException::call);
        assertThat(fake.calls())
                .containsExactly(
                        "ncclGroupStart()", "ncclSend(0, 1, 7, 1, 57)", "ncclSend(0, 1, 7, 1, 57)", "ncclGroupEnd()");
        fake.fail("ncclGroupEnd", 6);
        assertThatThrownBy(() -> nccl.group(() -> ranks.getLast().receive(a, 1, DataType.FLOAT32, 0, STREAM)))
                .asInstanceOf(type(NcclException.class))
                .returns(NcclResult.REMOTE_ERROR, NcclException::result);
    }

    @Test
    void anErrorSaysWhichCallWithWhatAndWhatNcclSays() {
        fake.fail("ncclAllReduce", 5);
        fake.lastError("Mismatched root detected");
        assertThatThrownBy(() -> ranks.getFirst().allReduce(0x100, 0x200, 4, DataType.INT32, ReductionOp.MIN, STREAM))
                .isInstanceOf(NcclException.class)
                .hasMessageContaining("ncclAllReduce(allReduce of 4 INT32, send=0x100, receive=0x200, op=MIN")
                .hasMessageContaining("ncclInvalidUsage (5)")
                .hasMessageContaining("Mismatched root detected");
        fake.fail("ncclAllReduce", 77);
        assertThatThrownBy(() -> ranks.getFirst().allReduce(0x100, 0x200, 4, DataType.INT32, ReductionOp.MIN, STREAM))
                .asInstanceOf(type(NcclException.class))
                .returns(NcclResult.UNKNOWN, NcclException::result)
                .returns(77, NcclException::code);
    }

    @Test
    void errorsOfTheWorkArePolled() {
        Communicator rank = ranks.getFirst();
        assertThat(rank.asyncError()).isEqualTo(NcclResult.SUCCESS);
        rank.checkAsync();
        fake.asyncError(rank, 6);
        assertThat(rank.asyncError()).isEqualTo(NcclResult.REMOTE_ERROR);
        assertThatThrownBy(rank::checkAsync).isInstanceOf(NcclException.class).hasMessageContaining("rank 0 of 2");
        rank.abort();
        assertThat(fake.calls()).containsExactly("ncclCommAbort(0)");
        assertThat(rank.asyncError()).isEqualTo(NcclResult.SUCCESS);
    }

    @Test
    void aSplitIsOneGroupOfAllRanks() {
        List<Optional<Communicator>> parts = nccl.split(ranks, new int[] {3, -5}, new int[] {7, 8});
        assertThat(fake.calls())
                .containsExactly(
                        "ncclGroupStart()",
                        "ncclCommSplit(0, 3, 7, (nil))",
                        "ncclCommSplit(1, -1, 8, (nil))",
                        "ncclGroupEnd()");
        assertThat(parts.getLast()).isEmpty();
        parts.getFirst().orElseThrow().close();
    }

    @Test
    void aCommunicatorIsFinishedOnceAndDestroyedOnce() {
        Communicator rank = ranks.getFirst();
        rank.finish();
        rank.finish();
        rank.close();
        rank.close();
        rank.abort();
        assertThat(fake.calls()).containsExactly("ncclCommFinalize(0)", "ncclCommDestroy(0)");
        assertThatThrownBy(() -> rank.send(1, 1, DataType.INT8, 1, STREAM))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
    }

    @Test
    void virtualThreadsCallToo() throws InterruptedException {
        long a = floats(1).address();
        Thread.ofVirtual()
                .start(() -> ranks.getFirst().send(a, 1, DataType.FLOAT32, 1, STREAM))
                .join();
        assertThat(fake.calls()).containsExactly("ncclSend(0, 1, 7, 1, 57)");
        nccl.group(() -> ranks.getLast().receive(a, 1, DataType.FLOAT32, 0, STREAM));
    }

    @Test
    void withoutAllToAllItIsAGroupOfSendsAndReceives(@TempDir Path folder) {
        FakeNccl older = new FakeNccl(folder, "-DVERSION=22703", "-DWITHOUT_ALL_TO_ALL");
        Nccl old = new Nccl(new NativeNccl(older.library(), gpu.devices()));
        List<Communicator> pair = old.initAll(0, 1);
        MemorySegment[] send = {floats(1, 2), floats(3, 4)};
        MemorySegment[] got = {floats(0, 0), floats(0, 0)};
        old.group(() -> {
            for (int i = 0; i < 2; i++) {
                pair.get(i).allToAll(send[i].address(), got[i].address(), 1, DataType.FLOAT32, STREAM);
            }
        });
        assertThat(read(got[0])).containsExactly(1, 3);
        assertThat(read(got[1])).containsExactly(2, 4);
        pair.forEach(Communicator::close);
    }

    @Test
    void whatCameLaterSaysWhenItCame(@TempDir Path folder) {
        FakeNccl older = new FakeNccl(folder, "-DVERSION=21903");
        Nccl old = new Nccl(new NativeNccl(older.library(), gpu.devices()));
        Communicator rank = old.initAll(0).getFirst();
        assertThatThrownBy(() -> rank.allReduce(8, 8, 1, DataType.FLOAT8_E4M3, ReductionOp.SUM, STREAM))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("2.24.3")
                .hasMessageContaining("2.19.3");
        rank.close();
    }
}
