package io.cistern.pressure;

import java.io.Serial;

/// Tells a task to free the memory that it has allocated and to start again with a part of its input.
/// The arbiter throws it if all other tasks have freed what they could, this task has already rolled
/// back, and there is still too little memory. The message says how much other tasks hold.
public final class SplitAndRetryOom extends TaskOom {
    @Serial
    private static final long serialVersionUID = 1L;

    private final String others;

    /// @param others a description of what other tasks hold
    SplitAndRetryOom(TaskThread thread, Refusal refusal, String others) {
        super(thread, refusal, "free what it allocated, and try again with a part of its input", "; " + others);
        this.others = others;
    }

    String others() {
        return others;
    }
}
