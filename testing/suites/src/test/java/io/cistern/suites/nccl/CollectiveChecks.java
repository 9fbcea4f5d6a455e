package io.cistern.suites.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.ReductionOp;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToDoubleFunction;

/// Checks the results of each collective on every rank of a communicator, in one process or several. All ranks
/// must call the same checks in the same order.
final class CollectiveChecks implements AutoCloseable {
    /// Not a power of two, so that the last block of a kernel is only partly used.
    private static final int COUNT = 1000;

    /// The first version of NCCL with 8-bit floating-point numbers.
    private static final int SMALL_FLOATS = 22403;

    private final Ranks ranks;
    private final MemoryPool pool;
    private final List<DeviceBuffer> open = new ArrayList<>();

    CollectiveChecks(Ranks ranks, MemoryPool pool) {
        this.ranks = ranks;
        this.pool = pool;
    }

    private DeviceBuffer[] buffers(long byteSize) {
        DeviceBuffer[] buffers = new DeviceBuffer[ranks.all.size()];
        try (var _ = pool.enter()) {
            for (int i = 0; i < buffers.length; i++) {
                int device = ranks.all.get(i).device();
                buffers[i] = DeviceBuffer.allocate(ranks.memory, byteSize, device, ranks.streams.get(i));
                open.add(buffers[i]);
            }
        }
        return buffers;
    }

    /// Closes the buffers of one check.
    @Override
    public void close() {
        open.forEach(DeviceBuffer::close);
        open.clear();
    }

    /// The values that a rank sends or must receive, by element.
    private interface OfRank {
        IntToDoubleFunction of(int rank);
    }

    private DeviceBuffer[] given(DataType type, int count, OfRank value) {
        DeviceBuffer[] buffers = buffers((long) count * type.byteSize());
        for (int i = 0; i < buffers.length; i++) {
            byte[] bytes = new Values(type).bytes(count, value.of(rank(i)));
            Transfers.write(ranks.driver, buffers[i], bytes, ranks.streams.get(i));
        }
        return buffers;
    }

    private int rank(int i) {
        return ranks.all.get(i).rank();
    }

    private void assertHolds(String what, DataType type, DeviceBuffer[] buffers, int count, OfRank value) {
        for (int i = 0; i < buffers.length; i++) {
            assertThat(Transfers.read(ranks.driver, buffers[i], ranks.streams.get(i)))
                    .as("%s of %s on rank %d", what, type, rank(i))
                    .isEqualTo(new Values(type).bytes(count, value.of(rank(i))));
        }
    }

    private static OfRank ownValues() {
        return rank -> i -> Values.of(rank, i);
    }

    /// Checks all reductions of all types.
    void reductions() {
        for (DataType type : DataType.values()) {
            for (ReductionOp op : ReductionOp.values()) {
                if (type.byteSize() > 1 || isWhole(type) || ranks.nccl.version() >= SMALL_FLOATS) {
                    allReduce(type, op);
                }
            }
        }
    }

    private static boolean isWhole(DataType type) {
        return type == DataType.INT8 || type == DataType.UINT8;
    }

    void allReduce(DataType type, ReductionOp op) {
        DeviceBuffer[] send = given(type, COUNT, ownValues());
        DeviceBuffer[] receive = buffers((long) COUNT * type.byteSize());
        ranks.together((rank, i) -> rank.allReduce(send[i], receive[i], type, op, ranks.streams.get(i)));
        ranks.together((rank, i) -> rank.allReduce(send[i], type, op, ranks.streams.get(i)));
        OfRank expected = _ -> i -> Values.reduced(type, op, ranks.count(), i);
        assertHolds("allReduce " + op, type, receive, COUNT, expected);
        assertHolds("allReduce in place " + op, type, send, COUNT, expected);
        close();
    }

    /// Checks the collectives that move elements unchanged.
    void moves() {
        for (int root = 0; root < ranks.count(); root++) {
            broadcast(root);
            reduce(root);
        }
        allGather();
        reduceScatter();
        allToAll();
        exchangeInRing();
    }

    private void broadcast(int root) {
        DeviceBuffer[] buffers = given(DataType.INT32, COUNT, ownValues());
        ranks.together((rank, i) -> rank.broadcast(buffers[i], DataType.INT32, root, ranks.streams.get(i)));
        assertHolds("broadcast", DataType.INT32, buffers, COUNT, _ -> i -> Values.of(root, i));
        close();
    }

    private void reduce(int root) {
        DeviceBuffer[] send = given(DataType.INT64, COUNT, ownValues());
        DeviceBuffer[] receive = given(DataType.INT64, COUNT, _ -> _ -> -1);
        ranks.together((rank, i) ->
                rank.reduce(send[i], receive[i], DataType.INT64, ReductionOp.SUM, root, ranks.streams.get(i)));
        assertHolds(
                "reduce",
                DataType.INT64,
                receive,
                COUNT,
                rank -> i -> rank == root ? Values.reduced(DataType.INT64, ReductionOp.SUM, ranks.count(), i) : -1);
        close();
    }

    void allGather() {
        DeviceBuffer[] send = given(DataType.FLOAT32, COUNT, ownValues());
        DeviceBuffer[] receive = buffers((long) COUNT * ranks.count() * Float.BYTES);
        ranks.together((rank, i) -> rank.allGather(send[i], receive[i], DataType.FLOAT32, ranks.streams.get(i)));
        assertHolds(
                "allGather",
                DataType.FLOAT32,
                receive,
                COUNT * ranks.count(),
                _ -> i -> Values.of(i / COUNT, i % COUNT));
        close();
    }

    private void reduceScatter() {
        int count = COUNT * ranks.count();
        DeviceBuffer[] send = given(DataType.FLOAT32, count, ownValues());
        DeviceBuffer[] receive = buffers((long) COUNT * Float.BYTES);
        ranks.together((rank, i) ->
                rank.reduceScatter(send[i], receive[i], DataType.FLOAT32, ReductionOp.SUM, ranks.streams.get(i)));
        assertHolds(
                "reduceScatter",
                DataType.FLOAT32,
                receive,
                COUNT,
                rank -> i -> Values.reduced(DataType.FLOAT32, ReductionOp.SUM, ranks.count(), rank * COUNT + i));
        close();
    }

    private void allToAll() {
        int count = COUNT * ranks.count();
        DeviceBuffer[] send = given(DataType.INT32, count, rank -> i -> inPart(i, rank));
        DeviceBuffer[] receive = buffers((long) count * Integer.BYTES);
        ranks.together((rank, i) -> rank.allToAll(send[i], receive[i], DataType.INT32, ranks.streams.get(i)));
        assertHolds("allToAll", DataType.INT32, receive, count, rank -> i -> inPart(COUNT * rank, i / COUNT));
        close();
    }

    /// Returns a rank's value for the part of its buffer that contains an element.
    private static double inPart(int element, int rank) {
        int part = element / COUNT;
        return 100.0 * rank + part;
    }

    /// Every rank receives from the previous rank before it sends to the next, which only works in a group.
    private void exchangeInRing() {
        if (ranks.count() == 1) {
            return;
        }
        DeviceBuffer[] send = given(DataType.UINT8, COUNT, ownValues());
        DeviceBuffer[] receive = buffers(COUNT);
        ranks.together((rank, i) -> {
            int before = (rank.rank() + rank.rankCount() - 1) % rank.rankCount();
            rank.receive(receive[i], DataType.UINT8, before, ranks.streams.get(i));
            rank.send(send[i], DataType.UINT8, (rank.rank() + 1) % rank.rankCount(), ranks.streams.get(i));
        });
        assertHolds(
                "send and receive",
                DataType.UINT8,
                receive,
                COUNT,
                rank -> i -> Values.of((rank + ranks.count() - 1) % ranks.count(), i));
        close();
    }

    /// Sums whole buffers of a size, in place and out of place, and checks every word.
    void sums(long byteSize) {
        DeviceBuffer[] send = buffers(byteSize);
        DeviceBuffer[] receive = buffers(byteSize);
        for (int i = 0; i < send.length; i++) {
            Transfers.fill(ranks.driver, send[i], 1 + rank(i), ranks.streams.get(i));
        }
        float sum = ranks.count() * (ranks.count() + 1) / 2f;
        ranks.together((rank, i) ->
                rank.allReduce(send[i], receive[i], DataType.FLOAT32, ReductionOp.SUM, ranks.streams.get(i)));
        ranks.together((rank, i) -> rank.allReduce(send[i], DataType.FLOAT32, ReductionOp.SUM, ranks.streams.get(i)));
        for (DeviceBuffer[] buffers : List.of(send, receive)) {
            for (int i = 0; i < buffers.length; i++) {
                assertThat(Transfers.countOther(ranks.driver, buffers[i], sum, ranks.streams.get(i)))
                        .as("words of %d bytes that are not %s on rank %d", byteSize, sum, rank(i))
                        .isZero();
            }
        }
        close();
    }

    /// Checks that all ranks of this process report no error.
    void nothingWentWrong() {
        ranks.all.forEach(Communicator::checkAsync);
    }
}
