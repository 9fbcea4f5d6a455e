package io.cistern.internal.names;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Collects the failures of several steps. Each step is taken even if others failed. After the last step
/// [#rethrow] throws the first failure, with the others suppressed in it.
public final class Failures {
    private @Nullable Throwable first;

    /// Takes a step, even if others failed before.
    public void gather(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error failure) {
            add(failure);
        }
    }

    /// Takes a step that gives a result, even if others failed before.
    ///
    /// @param otherwise the result if it fails
    public <T> T gather(Supplier<T> step, T otherwise) {
        try {
            return step.get();
        } catch (RuntimeException | Error failure) {
            add(failure);
            return otherwise;
        }
    }

    /// Takes a step as [#gather] does, but immediately rethrows a refusal due to a capture: the caller
    /// retries the step after the capture.
    public void gatherUnlessCaptured(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error failure) {
            if (failure instanceof CudaException refusal && refusal.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                throw failure;
            }
            add(failure);
        }
    }

    public void add(Throwable failure) {
        if (first == null) {
            first = failure;
        } else if (!failure.equals(first)) {
            first.addSuppressed(failure);
        }
    }

    /// Throws the first failure, if there was any, and forgets it.
    public void rethrow() {
        Throwable thrown = first;
        first = null;
        switch (thrown) {
            case RuntimeException failure -> throw failure;
            case Error failure -> throw failure;
            case null, default -> {}
        }
    }
}
