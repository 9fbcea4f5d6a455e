package io.cistern.nccl;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Collective.Kind;

/// The calls that move data between ranks. Each exists for addresses, which are believed, and for buffers, which are
/// checked before NCCL is called: device, size, alignment. The memory of a buffer stays with it until the stream has
/// passed the call, also if the buffer belongs to another stream and is closed at once.
///
/// Every rank makes the same calls in the same order with fitting sizes; `stream` is one of the rank's device. Sending
/// from and receiving into the same buffer is allowed where both forms say `inPlace`.
public abstract sealed class Collectives permits Communicator {
    Collectives() {}

    /// This rank, from 0.
    public abstract int rank();

    /// How many ranks there are.
    public abstract int rankCount();

    /// The device of this rank.
    public abstract int device();

    abstract void enqueue(Collective collective, long stream);

    /// Every rank gets the elements of all ranks, reduced to one.
    ///
    /// @param send what this rank gives: the address of `count` elements
    /// @param receive where the result goes; may be `send`
    /// @throws NcclException if NCCL refuses
    public void allReduce(long send, long receive, long count, DataType type, ReductionOp op, long stream) {
        enqueue(reducing(Kind.ALL_REDUCE, send, receive, count, type, op, 0), stream);
    }

    /// As the other form, for whole buffers of equal size.
    ///
    /// @throws IllegalArgumentException if a buffer does not fit
    public void allReduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, long stream) {
        Operands operands = new Operands(this, Kind.ALL_REDUCE, type, stream);
        long count = operands.count(send, 1, receive, 1);
        allReduce(operands.use(send), operands.use(receive), count, type, op, stream);
    }

    /// As the other form, in place.
    ///
    /// @throws IllegalArgumentException if the buffer does not fit
    public void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op, long stream) {
        allReduce(inPlace, inPlace, type, op, stream);
    }

    /// Every rank gets the elements of the root.
    ///
    /// @param send what the root gives; not looked at on other ranks
    /// @param receive where they go; may be `send`
    /// @throws NcclException if NCCL refuses
    public void broadcast(long send, long receive, long count, DataType type, int root, long stream) {
        enqueue(Collective.moving(Kind.BROADCAST, send, receive, count, type, checkedPeer(root)), stream);
    }

    /// As the other form, for a whole buffer, in place.
    ///
    /// @throws IllegalArgumentException if the buffer does not fit
    public void broadcast(DeviceBuffer inPlace, DataType type, int root, long stream) {
        Operands operands = new Operands(this, Kind.BROADCAST, type, stream);
        long count = operands.count(inPlace, 1);
        long address = operands.use(inPlace);
        broadcast(address, address, count, type, root, stream);
    }

    /// The root gets the elements of all ranks, reduced to one.
    ///
    /// @param send what this rank gives
    /// @param receive where the result goes; may be `send`; not looked at on other ranks than the root
    /// @throws NcclException if NCCL refuses
    public void reduce(long send, long receive, long count, DataType type, ReductionOp op, int root, long stream) {
        enqueue(reducing(Kind.REDUCE, send, receive, count, type, op, checkedPeer(root)), stream);
    }

    /// As the other form, for whole buffers of equal size.
    ///
    /// @throws IllegalArgumentException if a buffer does not fit
    public void reduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, int root, long stream) {
        Operands operands = new Operands(this, Kind.REDUCE, type, stream);
        long count = operands.count(send, 1, receive, 1);
        reduce(operands.use(send), operands.use(receive), count, type, op, root, stream);
    }

    /// Every rank gets the elements of all ranks, in the order of ranks.
    ///
    /// @param send what this rank gives: `sendCount` elements
    /// @param receive where all of them go: `sendCount` × ranks; in place if `send` is this rank's part of it
    /// @throws NcclException if NCCL refuses
    public void allGather(long send, long receive, long sendCount, DataType type, long stream) {
        enqueue(Collective.moving(Kind.ALL_GATHER, send, receive, sendCount, type, 0), stream);
    }

    /// As the other form, for whole buffers.
    ///
    /// @param receive as many times as large as `send` as there are ranks
    /// @throws IllegalArgumentException if a buffer does not fit
    public void allGather(DeviceBuffer send, DeviceBuffer receive, DataType type, long stream) {
        Operands operands = new Operands(this, Kind.ALL_GATHER, type, stream);
        long count = operands.count(send, 1, receive, rankCount());
        allGather(operands.use(send), operands.use(receive), count, type, stream);
    }

    /// The elements of all ranks are reduced to one, and each rank gets its part.
    ///
    /// @param send what this rank gives: `receiveCount` × ranks elements
    /// @param receive where its part goes: `receiveCount`; in place if it is this rank's part of `send`
    /// @throws NcclException if NCCL refuses
    public void reduceScatter(long send, long receive, long receiveCount, DataType type, ReductionOp op, long stream) {
        enqueue(reducing(Kind.REDUCE_SCATTER, send, receive, receiveCount, type, op, 0), stream);
    }

    /// As the other form, for whole buffers.
    ///
    /// @param send as many times as large as `receive` as there are ranks
    /// @throws IllegalArgumentException if a buffer does not fit
    public void reduceScatter(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, long stream) {
        Operands operands = new Operands(this, Kind.REDUCE_SCATTER, type, stream);
        long count = operands.count(receive, 1, send, rankCount());
        reduceScatter(operands.use(send), operands.use(receive), count, type, op, stream);
    }

    /// Each rank gives each other rank a part of its own.
    ///
    /// @param send `count` elements for each rank, in their order
    /// @param receive `count` elements from each rank, in their order; not `send`
    /// @throws NcclException if NCCL refuses
    public void allToAll(long send, long receive, long count, DataType type, long stream) {
        enqueue(Collective.moving(Kind.ALL_TO_ALL, send, receive, count, type, 0), stream);
    }

    /// As the other form, for whole buffers of equal size.
    ///
    /// @throws IllegalArgumentException if a buffer does not fit
    public void allToAll(DeviceBuffer send, DeviceBuffer receive, DataType type, long stream) {
        Operands operands = new Operands(this, Kind.ALL_TO_ALL, type, stream);
        long count = operands.count(send, rankCount(), receive, rankCount());
        allToAll(operands.use(send), operands.use(receive), count, type, stream);
    }

    /// Gives elements to one rank, which [receives][#receive] as many.
    ///
    /// @throws NcclException if NCCL refuses
    public void send(long address, long count, DataType type, int peer, long stream) {
        enqueue(Collective.moving(Kind.SEND, address, 0, count, type, checkedPeer(peer)), stream);
    }

    /// As the other form, for a whole buffer.
    ///
    /// @throws IllegalArgumentException if the buffer does not fit
    public void send(DeviceBuffer buffer, DataType type, int peer, long stream) {
        Operands operands = new Operands(this, Kind.SEND, type, stream);
        send(operands.use(buffer), operands.count(buffer, 1), type, peer, stream);
    }

    /// Gets elements from one rank, which [sends][#send] as many. Sending and receiving at once needs a
    /// [group][Nccl#group].
    ///
    /// @throws NcclException if NCCL refuses
    public void receive(long address, long count, DataType type, int peer, long stream) {
        enqueue(Collective.moving(Kind.RECEIVE, 0, address, count, type, checkedPeer(peer)), stream);
    }

    /// As the other form, for a whole buffer.
    ///
    /// @throws IllegalArgumentException if the buffer does not fit
    public void receive(DeviceBuffer buffer, DataType type, int peer, long stream) {
        Operands operands = new Operands(this, Kind.RECEIVE, type, stream);
        receive(operands.use(buffer), operands.count(buffer, 1), type, peer, stream);
    }

    private int checkedPeer(int peer) {
        if (peer < 0 || peer >= rankCount()) {
            throw new IllegalArgumentException("rank " + peer + " does not exist; there are " + rankCount());
        }
        return peer;
    }

    /// The average of one rank is asked for as its sum: for one, NCCL (2.28) refuses averages of 8-bit floats.
    private Collective reducing(
            Kind kind, long send, long receive, long count, DataType type, ReductionOp op, int peer) {
        boolean ofOne = op == ReductionOp.AVERAGE && rankCount() == 1;
        return new Collective(kind, send, receive, count, type, ofOne ? ReductionOp.SUM : op, peer);
    }
}
