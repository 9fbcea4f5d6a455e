package io.cistern.nccl;

import static java.util.Objects.requireNonNull;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.internal.call.BlockingWork;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The calls of one [Nccl#group], kept until its end and then made together. NCCL identifies a group by its OS
/// thread, which a virtual thread may leave in between. Also, if the code throws, it has made no call.
///
/// 1. Take the locks of all communicators of the group, in the order of their creation, so that two groups
///    can't wait for each other.
/// 2. Register new segments of their pools.
/// 3. Call `ncclGroupStart`, the calls, `ncclGroupEnd`.
///
/// **Cost.** A group is short, and programs make the same one over and over. So a thread
/// keeps its group and stores a reference only if it differs from the old one: a young object stored in an old
/// one costs time with G1, whose refinement threads have to look at it. In exchange, the communicators and buffers
/// of a thread's last group stay reachable from the thread, even after they are closed.
final class Group {
    private static final ThreadLocal<Group> OF_THREAD = ThreadLocal.withInitial(Group::new);

    private static final class Call {
        private @Nullable Communicator communicator;
        private @Nullable Collective collective;
        private long stream;

        void set(Communicator rank, Collective call, long onStream) {
            if (communicator != rank) {
                communicator = rank;
            }
            if (!call.equals(collective)) {
                collective = call;
            }
            stream = onStream;
        }

        void enqueue(NcclApi api) {
            api.enqueue(requireNonNull(communicator).handle(), requireNonNull(collective), stream);
        }
    }

    private Call[] calls = {};
    private int callCount;

    /// The communicators whose locks are taken, each once, in the order of their creation.
    private @Nullable Communicator[] members = {};

    private int memberCount;

    /// The buffers of the calls, which must be open until the calls are made.
    private @Nullable DeviceBuffer[] buffers = {};

    private int bufferCount;
    private boolean open;

    private Group() {}

    /// Returns the group that the calling thread is in, or null.
    static @Nullable Group current() {
        Group group = OF_THREAD.get();
        return group.open ? group : null;
    }

    void add(Communicator communicator, Collective collective, long stream) {
        if (callCount == calls.length) {
            calls = Arrays.copyOf(calls, callCount + 1);
            calls[callCount] = new Call();
        }
        calls[callCount++].set(communicator, collective, stream);
        if (!isMember(communicator)) {
            addMember(communicator);
        }
    }

    void add(DeviceBuffer buffer) {
        if (bufferCount == buffers.length) {
            buffers = Arrays.copyOf(buffers, bufferCount + 1);
        }
        if (buffers[bufferCount] != buffer) {
            buffers[bufferCount] = buffer;
        }
        bufferCount++;
    }

    private void requireOpenBuffers() {
        for (int i = 0; i < bufferCount; i++) {
            long _ = requireNonNull(buffers[i]).address();
        }
    }

    private boolean isMember(Communicator communicator) {
        for (int i = 0; i < memberCount; i++) {
            if (members[i] == communicator) {
                return true;
            }
        }
        return false;
    }

    private void addMember(Communicator communicator) {
        if (memberCount == members.length) {
            members = Arrays.copyOf(members, memberCount + 1);
        }
        int at = memberCount++;
        for (; at > 0 && member(at - 1).number() > communicator.number(); at--) {
            members[at] = members[at - 1];
        }
        if (members[at] != communicator) {
            members[at] = communicator;
        }
    }

    private Communicator member(int at) {
        return requireNonNull(members[at]);
    }

    /// Runs code whose calls form one group; inside a group they join that one.
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
            requireOpenBuffers();
            if (callCount > 0) {
                BlockingWork.run(() -> issue(api));
            }
        } finally {
            open = false;
            callCount = 0;
            memberCount = 0;
            bufferCount = 0;
        }
    }

    private void issue(NcclApi api) {
        int entered = 0;
        try {
            for (; entered < memberCount; entered++) {
                member(entered).enter();
            }
            api.onDevice(member(0).device(), () -> around(api, () -> enqueue(api)));
        } finally {
            while (entered-- > 0) {
                member(entered).leave();
            }
        }
    }

    private void enqueue(NcclApi api) {
        for (int i = 0; i < callCount; i++) {
            calls[i].enqueue(api);
        }
    }

    /// Makes calls between start and end of a group. The group is ended in any case; the first failure is
    /// thrown.
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
