package io.cistern.jcuda;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import jcuda.CudaException;
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;
import org.jspecify.annotations.Nullable;

/// Gives a result to the program as JCuda would: as a number, or as JCuda's exception
/// after `setExceptionsEnabled(true)`.
///
/// No public member of JCuda says whether exceptions are enabled. So this class binds, once, the method with
/// which each of JCuda's own calls ends, like the field of [HandleField]. It calls that method for failures
/// only, so a program without failures needs none of JCuda's native libraries.
final class JCudaResults {
    private static final MethodHandle DRIVER = bind(JCudaDriver.class);
    private static final MethodHandle RUNTIME = bind(JCuda.class);

    private JCudaResults() {}

    /// Returns a result of the driver API.
    ///
    /// @param cause the reason of the failure, for the exception
    /// @return the same result
    /// @throws CudaException for a failure, if the program enabled the exceptions of [JCudaDriver]
    static int ofDriver(int result, @Nullable Throwable cause) {
        return result == 0 ? 0 : check(DRIVER, result, cause);
    }

    /// Returns a result of the runtime API.
    ///
    /// @param cause the reason of the failure, for the exception
    /// @return the same result
    /// @throws CudaException for a failure, if the program enabled the exceptions of [JCuda]
    static int ofRuntime(int result, @Nullable Throwable cause) {
        return result == 0 ? 0 : check(RUNTIME, result, cause);
    }

    private static int check(MethodHandle checkResult, int result, @Nullable Throwable cause) {
        try {
            return (int) checkResult.invokeExact(result);
        } catch (CudaException enabled) {
            if (cause != null) {
                enabled.initCause(cause);
            }
            throw enabled;
        } catch (LinkageError withoutNativeParts) {
            return result; // without native libraries, no program could enable exceptions
        } catch (Throwable other) {
            throw new IllegalStateException(other); // checkResult declares no checked exceptions
        }
    }

    private static MethodHandle bind(Class<?> api) {
        try {
            return MethodHandles.privateLookupIn(api, MethodHandles.lookup())
                    .findStatic(api, "checkResult", MethodType.methodType(int.class, int.class));
        } catch (ReflectiveOperationException other) {
            throw new CudaException(
                    "cistern-jcuda supports JCuda 12.6.0, and this version checks its results differently", other);
        }
    }
}
