package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.EnumMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Failures on demand: which call fails, after how many more, how often, with what. Safe for use by many threads.
public final class Faults {
    private final Map<DriverCall, Fault> faults = new EnumMap<>(DriverCall.class);

    Faults() {}

    /// Lets the next `afterCalls` calls of one function through and makes the `times` calls after them fail
    /// before they do anything. Replaces an earlier wish for the same function.
    ///
    /// @param call the function
    /// @param afterCalls how many calls go through first, at least 0
    /// @param times how many calls fail then; [Integer#MAX_VALUE] for all
    /// @param result what they return
    public synchronized void failOn(DriverCall call, int afterCalls, int times, CudaResult result) {
        faults.put(call, new Fault(afterCalls, times, result));
    }

    /// Forgets all wishes.
    public synchronized void clear() {
        faults.clear();
    }

    /// The result that this call shall have, or null for its own.
    synchronized @Nullable CudaResult next(DriverCall call) {
        Fault fault = faults.get(call);
        if (fault == null) {
            return null;
        }
        if (fault.afterCalls > 0) {
            faults.put(call, new Fault(fault.afterCalls - 1, fault.times, fault.result));
            return null;
        }
        if (fault.times <= 1) {
            faults.remove(call);
        } else if (fault.times < Integer.MAX_VALUE) {
            faults.put(call, new Fault(0, fault.times - 1, fault.result));
        }
        return fault.times > 0 ? fault.result : null;
    }

    private record Fault(int afterCalls, int times, CudaResult result) {}
}
