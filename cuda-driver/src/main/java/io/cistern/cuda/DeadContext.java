package io.cistern.cuda;

import org.jspecify.annotations.Nullable;

/// Makes driver calls whose failure does not matter once the context has [failed][CudaResult#endsContext]. The
/// memory, streams and events of such a context are gone, and nothing runs in it any more. So a call that frees
/// or destroys something in it, or waits for its work, counts as done.
///
/// Use this only for calls without a result. A call that allocates or copies has to report the dead context.
public final class DeadContext {
    /// The largest number of times that [#insist] makes a call.
    public static final int MOST_TRIES = 4;

    private DeadContext() {}

    /// Makes a call that frees something or waits. If the context is dead, the call counts as done.
    ///
    /// @throws CudaException if the driver refuses for another reason
    public static void survive(Runnable call) {
        CudaException refusal = refusal(call);
        if (refusal != null) {
            throw refusal;
        }
    }

    /// Makes a call as [#survive] does. If the driver refuses it, this repeats the call, up to [#MOST_TRIES]
    /// times in all. Use it for a call that frees something and that no code would repeat later.
    ///
    /// @throws CudaException if the driver refuses each time
    public static void insist(Runnable call) {
        CudaException refusal = refusal(call);
        for (int tries = 1; refusal != null && tries < MOST_TRIES; tries++) {
            refusal = refusal(call);
        }
        if (refusal != null) {
            throw refusal;
        }
    }

    /// Makes a call as [#survive] does, but returns false if the driver refuses, so that the caller can try
    /// again later.
    ///
    /// @return true if the call succeeded or the context is dead
    public static boolean isDone(Runnable call) {
        return refusal(call) == null;
    }

    /// Makes a call as [#insist] does, but returns false if the driver refuses each time. Allocates nothing
    /// on the Java heap.
    ///
    /// @return true if the call succeeded or the context is dead
    public static boolean isDoneAtLast(Runnable call) {
        boolean done = isDone(call);
        for (int tries = 1; !done && tries < MOST_TRIES; tries++) {
            done = isDone(call);
        }
        return done;
    }

    /// Makes a call as [#isDone] does, and returns why the driver refuses it.
    ///
    /// @return the driver's refusal; null if the call succeeded or the context is dead
    @SuppressWarnings("exports") // JSpecify is not needed at run time
    public static @Nullable CudaException refusal(Runnable call) {
        try {
            call.run();
        } catch (CudaException refusal) {
            return refusal.result().endsContext() ? null : refusal;
        }
        return null;
    }
}
