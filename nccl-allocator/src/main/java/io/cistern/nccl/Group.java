package io.cistern.nccl;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The calls of one [Nccl#group], kept until its end and then made in one go: NCCL knows a group by the OS thread,
/// which a virtual thread may leave in between, and a block that throws has called nothing.
///
/// 1. The locks of all communicators of the group, in the order of their making, so that two groups can't wait for
/// each other. 2. What their pools have new is registered. 3. `ncclGroupStart`, the calls, `ncclGroupEnd`.
final class Group {
    private static final ThreadLocal<@Nullable Group> CURRENT = new ThreadLocal<>();

    private record Call(Communicator communicator, Collective collective, long stream) {}

    private final List<Call> calls = new ArrayList<>();

    private Group() {}

    /// The group that the calling thread is in, or null.
    static @Nullable Group current() {
        return CURRENT.get();
    }

    void add(Communicator communicator, Collective collective, long stream) {
        calls.add(new Call(communicator, collective, stream));
    }

    /// Runs code whose calls make one group; within a group it joins that.
    static void of(NcclApi api, Runnable code) {
        if (CURRENT.get() != null) {
            code.run();
            return;
        }
        Group group = new Group();
        CURRENT.set(group);
        try {
            code.run();
        } finally {
            CURRENT.remove();
        }
        if (!group.calls.isEmpty()) {
            BlockingWork.run(() -> group.issue(api));
        }
    }

    private void issue(NcclApi api) {
        List<Communicator> members = members();
        int entered = 0;
        try {
            for (; entered < members.size(); entered++) {
                members.get(entered).enter();
            }
            api.onDevice(members.getFirst().device(), () -> around(api, () -> enqueue(api)));
        } finally {
            members.subList(0, entered).forEach(Communicator::leave);
        }
    }

    private void enqueue(NcclApi api) {
        for (Call call : calls) {
            api.enqueue(call.communicator.handle(), call.collective, call.stream);
        }
    }

    /// Without garbage to speak of: a group may be a call of microseconds.
    private List<Communicator> members() {
        List<Communicator> members = new ArrayList<>(calls.size());
        for (Call call : calls) {
            if (!members.contains(call.communicator)) {
                members.add(call.communicator);
            }
        }
        members.sort(Comparator.comparingLong(Communicator::number));
        return members;
    }

    /// Makes calls between start and end of a group. The group is ended in any case; the first failure counts.
    static void around(NcclApi api, Runnable calls) {
        api.groupStart();
        Throwable failure = null;
        try {
            calls.run();
        } catch (RuntimeException | Error e) {
            failure = e;
            throw e;
        } finally {
            end(api, failure);
        }
    }

    private static void end(NcclApi api, @Nullable Throwable failure) {
        try {
            api.groupEnd();
        } catch (NcclException second) {
            if (failure == null) {
                throw second;
            }
            failure.addSuppressed(second);
        }
    }
}
