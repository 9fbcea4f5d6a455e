package io.cistern.pressure;

/// What a thread of a [task][Task] is doing, as a [TaskArbiter] sees it.
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
    /// In the program, or in the allocator.
    RUNNING,

    /// Was refused memory, and waits until some is freed.
    BLOCKED,

    /// Was chosen to free what it made, so that others can go on; gets a [RetryOom].
    ROLLING_BACK,

    /// Has freed what it made, and waits until further notice.
    ROLLED_BACK,

    /// Was chosen to go on with a part of its input; gets a [SplitAndRetryOom].
    SPLITTING;

    /// Whether a thread in this state goes on only when the arbiter says so.
    boolean waits() {
        return this == BLOCKED || this == ROLLED_BACK;
    }
}
