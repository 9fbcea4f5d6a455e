package io.cistern.nccl;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The calls of one [Nccl#group], kept until its end and then made in one go: NCCL knows a group by the OS thread,
/// which a virtual thread may leave in between, and a block that throws has called nothing.
///
/// 1. The locks of all communicators of the group, in the order of their making, so that two groups can't wait for
/// each other. 2. What their pools have new is registered. 3. `ncclGroupStart`, the calls, `ncclGroupEnd`.
///
/// A thread keeps its group, empty: a group may be a call of microseconds.
final class Group {
    private static final ThreadLocal<Group> OF_THREAD = ThreadLocal.withInitial(Group::new);

    private record Call(Communicator communicator, Collective collective, long stream) {}

    private final List<Call> calls = new ArrayList<>();

    /// Whose locks are taken, each once, in the order of their making.
    private final List<Communicator> members = new ArrayList<>();

    private boolean open;

    private Group() {}

    /// The group that the calling thread is in, or null.
    static @Nullable Group current() {
        Group group = OF_THREAD.get();
        return group.open ? group : null;
    }

    void add(Communicator communicator, Collective collective, long stream) {
        calls.add(new Call(communicator, collective, stream));
        if (!members.contains(communicator)) {
            addMember(communicator);
        }
    }

    private void addMember(Communicator communicator) {
        int at = members.size();
        while (at > 0 && members.get(at - 1).number() > communicator.number()) {
            at--;
        }
        members.add(at, communicator);
    }

    /// Runs code whose calls make one group; within a group it joins that.
    static void of(NcclApi api, Runnable code) {
        Group group = OF_THREAD.get();
        if (group.open) {
            code.run();
        } else {
            group.gatherAndIssue(api, code);
        }
    }

    private void gatherAndIssue(NcclApi api, Runnable code) {
        open = true;
        try {
            code.run();
            open = false;
            if (!calls.isEmpty()) {
                BlockingWork.run(() -> issue(api));
            }
        } finally {
            open = false;
            calls.clear();
            members.clear();
        }
    }

    private void issue(NcclApi api) {
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
