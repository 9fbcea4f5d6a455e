package io.cistern.spark.barrier;

import io.cistern.cuda.CisternException;
import java.io.Serial;
import org.jspecify.annotations.Nullable;

/// Reports that a collective of a barrier stage can't complete because another task failed or this task
/// was killed.
public final class BrokenStageException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    BrokenStageException(String message, @Nullable Throwable cause) {
        super(message);
        if (cause != null) {
            initCause(cause);
        }
    }
}
