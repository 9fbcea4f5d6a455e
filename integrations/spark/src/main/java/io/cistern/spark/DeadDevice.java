package io.cistern.spark;

import io.cistern.cuda.CudaException;
import org.jspecify.annotations.Nullable;

/// Ends an executor whose device can't be used any more, because its context is dead.
final class DeadDevice {
    private static final System.Logger LOG = System.getLogger(DeadDevice.class.getName());

    /// The executor's exit code, which Spark reports.
    private static final int EXIT_CODE = 72;

    private static final int MAX_CAUSES = 32;

    private DeadDevice() {}

    static void endProcessIfDead(Throwable failure) {
        if (isDead(failure)) {
            LOG.log(System.Logger.Level.ERROR, "the device's context is dead; this executor ends", failure);
            Runtime.getRuntime().halt(EXIT_CODE); // an orderly exit would wait for the device
        }
    }

    static boolean isDead(Throwable failure) {
        @Nullable Throwable cause = failure;
        for (int i = 0; cause != null && i < MAX_CAUSES; i++) {
            if (cause instanceof CudaException cuda && cuda.result().endsContext()) {
                return true;
            }
            cause = cause.getCause();
        }
        return false;
    }
}
