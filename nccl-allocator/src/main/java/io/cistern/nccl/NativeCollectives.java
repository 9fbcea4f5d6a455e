package io.cistern.nccl;

import io.cistern.nccl.Collective.Kind;
import io.cistern.nccl.NcclApi.Handle;
import io.cistern.nccl.internal.call.NcclCall;

/// Calls the functions of libnccl that move data, by kind.
final class NativeCollectives {
    private final NcclFunction allReduce;
    private final NcclFunction broadcast;
    private final NcclFunction reduce;
    private final NcclFunction allGather;
    private final NcclFunction reduceScatter;
    private final NcclFunction allToAll;
    private final NcclFunction send;
    private final NcclFunction receive;

    NativeCollectives(NcclLibrary library) {
        allReduce = library.function(NcclCall.ALL_REDUCE);
        broadcast = library.function(NcclCall.BROADCAST);
        reduce = library.function(NcclCall.REDUCE);
        allGather = library.function(NcclCall.ALL_GATHER);
        reduceScatter = library.function(NcclCall.REDUCE_SCATTER);
        allToAll = library.function(NcclCall.ALL_TO_ALL);
        send = library.function(NcclCall.SEND);
        receive = library.function(NcclCall.RECEIVE);
    }

    /// Enqueues one call on a stream.
    void enqueue(Handle communicator, Collective call, long stream, NcclApi api) {
        if (call.kind() == Kind.ALL_TO_ALL && !allToAll.present()) {
            exchange(communicator, call, stream, api);
            return;
        }
        NcclFunction function = function(call.kind());
        int code = call(function, communicator.value(), call, stream);
        if (code != NcclResult.SUCCESS.code()) {
            String arguments = call + ", stream=0x" + Long.toHexString(stream);
            throw function.failed(code, arguments);
        }
    }

    private NcclFunction function(Kind kind) {
        return switch (kind) {
            case ALL_REDUCE -> allReduce;
            case BROADCAST -> broadcast;
            case REDUCE -> reduce;
            case ALL_GATHER -> allGather;
            case REDUCE_SCATTER -> reduceScatter;
            case ALL_TO_ALL -> allToAll;
            case SEND -> send;
            case RECEIVE -> receive;
        };
    }

    private static int call(NcclFunction function, long communicator, Collective call, long stream) {
        int type = call.type().code();
        int op = call.op().code();
        long send = call.send();
        long receive = call.receive();
        long count = call.count();
        return switch (call.kind()) {
            case ALL_REDUCE, REDUCE_SCATTER -> function.call(send, receive, count, type, op, communicator, stream);
            case BROADCAST -> function.call(send, receive, count, type, call.peer(), communicator, stream);
            case REDUCE -> function.call(send, receive, count, type, op, call.peer(), communicator, stream);
            case ALL_GATHER, ALL_TO_ALL -> function.call(send, receive, count, type, communicator, stream);
            case SEND -> function.call(send, count, type, call.peer(), communicator, stream);
            case RECEIVE -> function.call(receive, count, type, call.peer(), communicator, stream);
        };
    }

    /// Makes an all-to-all for versions before 2.28.3 as NCCL's manual does: as a group of sends and receives.
    private void exchange(Handle communicator, Collective call, long stream, NcclApi api) {
        int ranks = api.rankCount(communicator);
        long part = call.count() * call.type().byteSize();
        Group.around(api, () -> {
            for (int peer = 0; peer < ranks; peer++) {
                long from = call.send() + peer * part;
                long to = call.receive() + peer * part;
                DataType type = call.type();
                enqueue(communicator, Collective.moving(Kind.SEND, from, 0, call.count(), type, peer), stream, api);
                enqueue(communicator, Collective.moving(Kind.RECEIVE, 0, to, call.count(), type, peer), stream, api);
            }
        });
    }
}
