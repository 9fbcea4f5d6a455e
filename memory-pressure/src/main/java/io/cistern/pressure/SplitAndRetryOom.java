package io.cistern.pressure;

import java.io.Serial;

/// The task shall free what it made and begin again with a part of its input: all other tasks have freed what
/// they could, it has begun again before, and still there is not enough.
public final class SplitAndRetryOom extends TaskOom {
    @Serial
    private static final long serialVersionUID = 1L;

    SplitAndRetryOom(TaskThread thread, Refusal refusal) {
        super(thread, refusal, "free what it made, and try again with a part of its input");
    }
}
