package io.cistern.pressure;

/// The state of a thread of a [task][Task], as a [TaskArbiter] sees it.
///
/// ```text
///                    refused                            all wait: lowest priority
///  RUNNING ────────────────────────────▶ BLOCKED ────────────────────────────────▶ ROLLING_BACK
///   ▲  ▲  ▲        something was freed     │  │                                         │ RetryOom;
///   │  │  └────────────────────────────────┘  │ all wait, all others have rolled back,  │ frees what it made,
///   │  │           SplitAndRetryOom           │ and so has this one before              │ blockUntilReady()
///   │  └────────────── SPLITTING ◀────────────┘                                         ▼
///   └───────────────────────────────────────────────────────────────────────────── ROLLED_BACK
///        what it lacked was freed and no one is blocked · a task ended · all wait: highest priority
/// ```
public enum ThreadState {
    /// The thread runs code of the program or of the allocator.
    RUNNING,

    /// The thread was refused memory, and waits until some is freed.
    BLOCKED,

    /// The thread was chosen to free its memory, so that others can go on; it gets a [RetryOom].
    ROLLING_BACK,

    /// The thread has freed its memory, and waits for its turn.
    ROLLED_BACK,

    /// The thread was chosen to go on with a part of its input; it gets a [SplitAndRetryOom].
    SPLITTING;

    /// Returns whether a thread in this state goes on only when the arbiter wakes it.
    boolean waits() {
        return this == BLOCKED || this == ROLLED_BACK;
    }
}
