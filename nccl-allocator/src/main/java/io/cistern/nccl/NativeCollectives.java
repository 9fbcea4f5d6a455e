package io.cistern.nccl;

import io.cistern.nccl.Collective.Kind;
import io.cistern.nccl.NcclApi.Handle;
import io.cistern.nccl.internal.call.NcclCall;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/// Calls the functions of libnccl that move data, by kind.
final class NativeCollectives {
    private final Map<Kind, NcclFunction> functions = new EnumMap<>(Kind.class);

    NativeCollectives(NcclLibrary library) {
        for (Kind kind : Kind.values()) {
            functions.put(kind, library.function(NcclCall.valueOf(kind.name())));
        }
    }

    /// Enqueues one call on a stream.
    void enqueue(Handle communicator, Collective call, long stream, NcclApi api) {
        if (call.kind() == Kind.ALL_TO_ALL && !function(Kind.ALL_TO_ALL).present()) {
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
        return Objects.requireNonNull(functions.get(kind));
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
