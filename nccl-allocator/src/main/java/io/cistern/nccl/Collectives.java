package io.cistern.nccl;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Collective.Kind;

/// The calls that move data between ranks. Each call has a method for addresses, which are not checked,
/// and methods for buffers. The device, size and alignment of buffers are checked before NCCL is
/// called. A buffer's memory is not reused until the call has completed on its stream, even if the
/// buffer belongs to another stream and is closed right after the call. A [group][Nccl#group] makes its
/// calls when it ends, so keep their buffers open until then.
///
/// Every rank must make the same calls in the same order, with matching sizes. `stream` is a stream of the rank's
/// device. Parameters named `inPlace` are both the input and the result.
///
/// **Errors.** Each call also throws an [IllegalStateException] if the communicator was finished, closed or
/// aborted, and an [UnsupportedOperationException] if this version of NCCL does not support the type. Inside a
/// [group][Nccl#group], a call is only recorded; [Nccl#group] then throws the [NcclException], or the
/// [IllegalStateException], also for a buffer that was closed inside the group.
public abstract sealed class Collectives permits Communicator {
    Collectives() {}

    /// Returns this rank, from 0.
    public abstract int rank();

    /// Returns the number of ranks.
    public abstract int rankCount();

    /// Returns the ordinal of this rank's device.
    public abstract int device();

    abstract void enqueue(Collective collective, long stream);

    /// Reduces the arrays of all ranks element by element, and gives every rank the result.
    ///
    /// @param send the address of this rank's `count` elements
    /// @param receive the address for the result; may be `send`
    /// @throws NcclException if NCCL refuses
    public void allReduce(long send, long receive, long count, DataType type, ReductionOp op, long stream) {
        enqueue(reducing(Kind.ALL_REDUCE, send, receive, count, type, op, 0), stream);
    }

    /// Reduces whole buffers of equal size; otherwise like the method for addresses.
    ///
    /// @throws IllegalArgumentException if the device, size or alignment of a buffer is wrong
    public void allReduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, long stream) {
        Operands operands = new Operands(this, Kind.ALL_REDUCE, type, stream);
        long count = operands.count(send, 1, receive, 1);
        allReduce(operands.use(send), operands.use(receive), count, type, op, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#allReduce(DeviceBuffer, DeviceBuffer, DataType, ReductionOp, long)].
    public void allReduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, CudaStream stream) {
        allReduce(send, receive, type, op, stream.handle());
    }

    /// Reduces a whole buffer in place; otherwise like the method for addresses.
    ///
    /// @throws IllegalArgumentException if the device, size or alignment of the buffer is wrong
    public void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op, long stream) {
        allReduce(inPlace, inPlace, type, op, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#allReduce(DeviceBuffer, DataType, ReductionOp, long)].
    public void allReduce(DeviceBuffer inPlace, DataType type, ReductionOp op, CudaStream stream) {
        allReduce(inPlace, type, op, stream.handle());
    }

    /// Copies the elements of the root to every rank.
    ///
    /// @param send the address of the root's elements; ignored on other ranks
    /// @param receive the address for the result; may be `send`
    /// @throws IllegalArgumentException if `root` is not a rank
    /// @throws NcclException if NCCL refuses
    public void broadcast(long send, long receive, long count, DataType type, int root, long stream) {
        enqueue(Collective.moving(Kind.BROADCAST, send, receive, count, type, checkedPeer(root)), stream);
    }

    /// Broadcasts a whole buffer in place; otherwise like the method for addresses.
    ///
    /// @throws IllegalArgumentException if the device, size or alignment of the buffer is wrong, or `root` is
    ///     not a rank
    public void broadcast(DeviceBuffer inPlace, DataType type, int root, long stream) {
        Operands operands = new Operands(this, Kind.BROADCAST, type, stream);
        long count = operands.count(inPlace, 1);
        long address = operands.use(inPlace);
        broadcast(address, address, count, type, root, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#broadcast(DeviceBuffer, DataType, int, long)].
    public void broadcast(DeviceBuffer inPlace, DataType type, int root, CudaStream stream) {
        broadcast(inPlace, type, root, stream.handle());
    }

    /// Reduces the arrays of all ranks element by element, and gives the result to the root only.
    ///
    /// @param send the address of this rank's elements
    /// @param receive the address for the result; may be `send`; ignored on all ranks except the root
    /// @throws IllegalArgumentException if `root` is not a rank
    /// @throws NcclException if NCCL refuses
    public void reduce(long send, long receive, long count, DataType type, ReductionOp op, int root, long stream) {
        enqueue(reducing(Kind.REDUCE, send, receive, count, type, op, checkedPeer(root)), stream);
    }

    /// Reduces whole buffers of equal size; otherwise like the method for addresses.
    ///
    /// @throws IllegalArgumentException if the device, size or alignment of a buffer is wrong, or `root` is not
    ///     a rank
    public void reduce(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, int root, long stream) {
        Operands operands = new Operands(this, Kind.REDUCE, type, stream);
        long count = operands.count(send, 1, receive, 1);
        reduce(operands.use(send), operands.use(receive), count, type, op, root, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#reduce(DeviceBuffer, DeviceBuffer, DataType, ReductionOp, int, long)].
    public void reduce(
            DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, int root, CudaStream stream) {
        reduce(send, receive, type, op, root, stream.handle());
    }

    /// Gathers the elements of all ranks, in the order of ranks, and gives every rank all of them.
    ///
    /// @param send the address of this rank's `sendCount` elements
    /// @param receive the address for `sendCount` × ranks elements; `send` may be this rank's part of it
    /// @throws NcclException if NCCL refuses
    public void allGather(long send, long receive, long sendCount, DataType type, long stream) {
        enqueue(Collective.moving(Kind.ALL_GATHER, send, receive, sendCount, type, 0), stream);
    }

    /// Gathers whole buffers; otherwise like the method for addresses.
    ///
    /// @param receive a buffer of the size of `send` × ranks
    /// @throws IllegalArgumentException if the device, size or alignment of a buffer is wrong
    public void allGather(DeviceBuffer send, DeviceBuffer receive, DataType type, long stream) {
        Operands operands = new Operands(this, Kind.ALL_GATHER, type, stream);
        long count = operands.count(send, 1, receive, rankCount());
        allGather(operands.use(send), operands.use(receive), count, type, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#allGather(DeviceBuffer, DeviceBuffer, DataType, long)].
    public void allGather(DeviceBuffer send, DeviceBuffer receive, DataType type, CudaStream stream) {
        allGather(send, receive, type, stream.handle());
    }

    /// Reduces the arrays of all ranks element by element, and gives each rank its part of the result.
    ///
    /// @param send the address of this rank's `receiveCount` × ranks elements
    /// @param receive the address for this rank's part, `receiveCount` elements; may be this rank's part of
    ///     `send`
    /// @throws NcclException if NCCL refuses
    public void reduceScatter(long send, long receive, long receiveCount, DataType type, ReductionOp op, long stream) {
        enqueue(reducing(Kind.REDUCE_SCATTER, send, receive, receiveCount, type, op, 0), stream);
    }

    /// Reduces and scatters whole buffers; otherwise like the method for addresses.
    ///
    /// @param send a buffer of the size of `receive` × ranks
    /// @throws IllegalArgumentException if the device, size or alignment of a buffer is wrong
    public void reduceScatter(DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, long stream) {
        Operands operands = new Operands(this, Kind.REDUCE_SCATTER, type, stream);
        long count = operands.count(receive, 1, send, rankCount());
        reduceScatter(operands.use(send), operands.use(receive), count, type, op, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#reduceScatter(DeviceBuffer, DeviceBuffer, DataType, ReductionOp, long)].
    public void reduceScatter(
            DeviceBuffer send, DeviceBuffer receive, DataType type, ReductionOp op, CudaStream stream) {
        reduceScatter(send, receive, type, op, stream.handle());
    }

    /// Sends a different part of `send` to each rank.
    ///
    /// @param send the address of `count` elements for each rank, in the order of ranks
    /// @param receive the address for `count` elements from each rank, in the order of ranks; not `send`
    /// @throws NcclException if NCCL refuses
    public void allToAll(long send, long receive, long count, DataType type, long stream) {
        enqueue(Collective.moving(Kind.ALL_TO_ALL, send, receive, count, type, 0), stream);
    }

    /// Exchanges whole buffers of equal size; otherwise like the method for addresses.
    ///
    /// @throws IllegalArgumentException if the device, size or alignment of a buffer is wrong
    public void allToAll(DeviceBuffer send, DeviceBuffer receive, DataType type, long stream) {
        Operands operands = new Operands(this, Kind.ALL_TO_ALL, type, stream);
        long count = operands.count(send, rankCount(), receive, rankCount());
        allToAll(operands.use(send), operands.use(receive), count, type, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#allToAll(DeviceBuffer, DeviceBuffer, DataType, long)].
    public void allToAll(DeviceBuffer send, DeviceBuffer receive, DataType type, CudaStream stream) {
        allToAll(send, receive, type, stream.handle());
    }

    /// Sends elements to one rank, which must [receive][#receive] the same number.
    ///
    /// @throws IllegalArgumentException if `peer` is not a rank
    /// @throws NcclException if NCCL refuses
    public void send(long address, long count, DataType type, int peer, long stream) {
        enqueue(Collective.moving(Kind.SEND, address, 0, count, type, checkedPeer(peer)), stream);
    }

    /// Sends a whole buffer; otherwise like the method for addresses.
    ///
    /// @throws IllegalArgumentException if the device, size or alignment of the buffer is wrong, or `peer` is
    ///     not a rank
    public void send(DeviceBuffer buffer, DataType type, int peer, long stream) {
        Operands operands = new Operands(this, Kind.SEND, type, stream);
        send(operands.use(buffer), operands.count(buffer, 1), type, peer, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#send(DeviceBuffer, DataType, int, long)].
    public void send(DeviceBuffer buffer, DataType type, int peer, CudaStream stream) {
        send(buffer, type, peer, stream.handle());
    }

    /// Receives elements from one rank, which must [send][#send] the same number. A rank that sends and
    /// receives at the same time makes both calls in a [group][Nccl#group].
    ///
    /// @throws IllegalArgumentException if `peer` is not a rank
    /// @throws NcclException if NCCL refuses
    public void receive(long address, long count, DataType type, int peer, long stream) {
        enqueue(Collective.moving(Kind.RECEIVE, 0, address, count, type, checkedPeer(peer)), stream);
    }

    /// Receives a whole buffer; otherwise like the method for addresses.
    ///
    /// @throws IllegalArgumentException if the device, size or alignment of the buffer is wrong, or `peer` is
    ///     not a rank
    public void receive(DeviceBuffer buffer, DataType type, int peer, long stream) {
        Operands operands = new Operands(this, Kind.RECEIVE, type, stream);
        receive(operands.use(buffer), operands.count(buffer, 1), type, peer, stream);
    }

    /// Makes the same call on a [CudaStream]: see
    /// [#receive(DeviceBuffer, DataType, int, long)].
    public void receive(DeviceBuffer buffer, DataType type, int peer, CudaStream stream) {
        receive(buffer, type, peer, stream.handle());
    }

    private int checkedPeer(int peer) {
        if (peer < 0 || peer >= rankCount()) {
            throw new IllegalArgumentException("rank " + peer + " does not exist; there are " + rankCount());
        }
        return peer;
    }

    /// Asks for a sum instead of an average of one rank: for one rank, NCCL (2.28) refuses averages of 8-bit
    /// floats.
    private Collective reducing(
            Kind kind, long send, long receive, long count, DataType type, ReductionOp op, int peer) {
        boolean ofOne = op == ReductionOp.AVERAGE && rankCount() == 1;
        return new Collective(kind, send, receive, count, type, ofOne ? ReductionOp.SUM : op, peer);
    }
}
