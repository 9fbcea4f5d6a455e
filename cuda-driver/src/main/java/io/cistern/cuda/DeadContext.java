package io.cistern.cuda;

import org.jspecify.annotations.Nullable;

/// The way to outlive a context that [failed][CudaResult#endsContext]: its memory, streams and events went with it, and
/// nothing runs in it any more. So what gives something back to it, or waits for its work, is done.
///
/// For calls that need no answer; one that allocates or copies has to tell of the dead context.
public final class DeadContext {
    private DeadContext() {}

    /// Makes a call that gives something back, or waits; a dead context has done that already.
    ///
    /// @throws CudaException if the driver refuses for another reason
    public static void survive(Runnable call) {
        CudaException refusal = refusal(call);
        if (refusal != null) {
            throw refusal;
        }
    }

    /// As [#survive], where a refusal is no end: the call is made again later.
    ///
    /// @return whether nothing is left to do
    public static boolean isDone(Runnable call) {
        return refusal(call) == null;
    }

    /// As [#isDone], and says why not.
    ///
    /// @return why the driver refuses, or null if nothing is left to do
    @SuppressWarnings("exports") // nobody needs JSpecify to run
    public static @Nullable CudaException refusal(Runnable call) {
        try {
            call.run();
        } catch (CudaException refusal) {
            return refusal.result().endsContext() ? null : refusal;
        }
        return null;
    }
}
