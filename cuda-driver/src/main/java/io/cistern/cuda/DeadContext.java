package io.cistern.cuda;

import org.jspecify.annotations.Nullable;

/// Helps code to survive a context that [failed][CudaResult#endsContext]. Its memory, streams and events are gone,
/// and nothing runs in it any more. So a call that gives something back to it, or waits for its work, counts as
/// done.
///
/// Only for calls that need no answer; a call that allocates or copies has to report the dead context.
public final class DeadContext {
    /// The most times that [#insist] makes a call.
    public static final int MOST_TRIES = 4;

    private DeadContext() {}

    /// Makes a call that gives something back or waits. If the context is dead, the call counts as done.
    ///
    /// @throws CudaException if the driver refuses for another reason
    public static void survive(Runnable call) {
        CudaException refusal = refusal(call);
        if (refusal != null) {
            throw refusal;
        }
    }

    /// Makes a call as [#survive] does. If the driver refuses, this makes the call a few times more: it is for calls
    /// that give something back and are not made again later.
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
    /// @return whether nothing is left to do
    public static boolean isDone(Runnable call) {
        return refusal(call) == null;
    }

    /// Makes a call as [#insist] does, but returns false if the driver refuses each time.
    ///
    /// @return whether nothing is left to do
    public static boolean isDoneAtLast(Runnable call) {
        return isDone(() -> insist(call));
    }

    /// Makes a call as [#isDone] does, and returns why the driver refuses it.
    ///
    /// @return the driver's refusal, or null if nothing is left to do
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
