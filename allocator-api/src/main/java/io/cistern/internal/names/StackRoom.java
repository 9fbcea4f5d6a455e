package io.cistern.internal.names;

/// Looks whether the stack has room, before something begins that must be ended.
///
/// What is counted or locked at the beginning of a call has to be counted or unlocked at its end, and both are calls
/// of their own. So the room for the second is looked for before the first: a StackOverflowError then comes before
/// anything has changed.
public final class StackRoom {
    private static final int SOME = 16;
    private static final int MUCH = 32;

    private StackRoom() {}

    /// Room for calls that count, lock and unlock.
    ///
    /// @throws StackOverflowError if there is not as much
    public static void require() {
        descend(SOME, SOME, 1, 2, 3, 4, 5, 6, 7);
    }

    /// Room for calls of an allocator and the driver that are made once.
    ///
    /// @throws StackOverflowError if there is not as much
    public static void requireMuch() {
        descend(MUCH, MUCH, 1, 2, 3, 4, 5, 6, 7);
    }

    /// The numbers are wanted after the call, so that each call has them on the stack: compiled code would else take
    /// less of it than the calls do that room is looked for, which may be interpreted.
    ///
    /// @return a number, so that the calls are not left out
    private static long descend(int calls, long a, long b, long c, long d, long e, long f, long g, long h) {
        return calls == 0
                ? a
                : descend(calls - 1, b, c, d, e, f, g, h, a) + (a ^ b) + (c ^ d) + (e ^ f) + (g ^ h) + calls;
    }
}
