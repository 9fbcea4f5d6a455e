package io.cistern.internal.names;

/// Looks whether the stack has room, before something begins that must be ended.
///
/// What is counted or locked at the beginning of a call has to be counted or unlocked at its end, and both are calls
/// of
/// their own. So the room for the second is looked for before the first: a StackOverflowError then comes before
/// anything has changed.
public final class StackRoom {
    private static final int SOME = 8;
    private static final int MUCH = 128;

    private StackRoom() {}

    /// Room for calls that count, lock and unlock.
    ///
    /// @throws StackOverflowError if there is not as much
    public static void require() {
        descend(SOME);
    }

    /// Room for calls of an allocator and the driver that are made once.
    ///
    /// @throws StackOverflowError if there is not as much
    public static void requireMuch() {
        descend(MUCH);
    }

    /// @return a number, so that the calls are not left out
    private static int descend(int calls) {
        return calls == 0 ? 0 : descend(calls - 1) + 1;
    }
}
