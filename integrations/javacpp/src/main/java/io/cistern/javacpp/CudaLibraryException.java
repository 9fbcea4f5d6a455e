package io.cistern.javacpp;

import io.cistern.cuda.CisternException;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Locale;

/// Reports that a CUDA library refused a call that [CudaLibraries] made.
public final class CudaLibraryException extends CisternException {
    private static final long serialVersionUID = 1;

    private final int status;

    /// @param preset the library's class of the presets, whose constants name the status
    CudaLibraryException(String library, String what, int status, Class<?> preset) {
        super(library + ": " + what + " failed: " + name(status, preset) + " (" + status + ")");
        this.status = status;
    }

    private static String name(int status, Class<?> preset) {
        String prefix = preset.getSimpleName().toUpperCase(Locale.ROOT) + "_STATUS_";
        return Arrays.stream(preset.getFields())
                .filter(constant -> constant.getName().startsWith(prefix) && value(constant) == status)
                .map(Field::getName)
                .findFirst()
                .orElse("unknown status");
    }

    private static int value(Field constant) {
        try {
            return constant.getInt(null);
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible); // all are public
        }
    }

    /// Returns the library's status, such as `CUBLAS_STATUS_ALLOC_FAILED`.
    public int status() {
        return status;
    }
}
