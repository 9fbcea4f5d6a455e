package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Makes driver calls fail on demand, for tests. A request names a function, one device or all devices, how
/// many calls succeed first, how many calls then fail, and the result of those that fail. Thread-safe.
public final class Faults {
    private static final int ALL_DEVICES = -1;

    private final Map<Where, Fault> faults = new HashMap<>();
    private long failedCalls;

    private record Where(DriverCall call, int device) {}

    /// @param isLoss whether the failing call also loses the context
    record Fault(int afterCalls, int times, CudaResult result, boolean isLoss) {
        private Fault(int afterCalls, int times, CudaResult result) {
            this(afterCalls, times, result, false);
        }
    }

    Faults() {}

    /// Lets the next `afterCalls` calls of a function succeed, and makes the `times` calls after them fail
    /// before they do anything. Replaces an earlier request for the same function on all devices.
    ///
    /// @param call the function
    /// @param afterCalls number of calls that succeed first, at least 0
    /// @param times number of calls that then fail; [Integer#MAX_VALUE] for all
    /// @param result the result of the failing calls
    public void failOn(DriverCall call, int afterCalls, int times, CudaResult result) {
        failOn(ALL_DEVICES, call, afterCalls, times, result);
    }

    /// Makes calls of a function on one device fail, and counts only calls on this device. If this request
    /// and one for all devices would both make a call fail, this one does, and the other does not count the
    /// call.
    ///
    /// @param device the device's ordinal
    /// @param call the function
    /// @param afterCalls number of calls that succeed first, at least 0
    /// @param times number of calls that then fail; [Integer#MAX_VALUE] for all
    /// @param result the result of the failing calls
    public synchronized void failOn(int device, DriverCall call, int afterCalls, int times, CudaResult result) {
        faults.put(new Where(call, device), new Fault(afterCalls, times, result));
    }

    /// Lets the next `afterCalls` calls of a function succeed. The call after them fails, and the context of
    /// its device is lost: all later calls that need this context fail with the same result, as they do after
    /// an illegal address. Replaces an earlier request for the same function on all devices.
    ///
    /// @param call the function
    /// @param afterCalls number of calls that succeed first, at least 0
    /// @param result the result of the failing calls, which must [end the context][CudaResult#endsContext]
    /// @throws IllegalArgumentException if `result` does not end the context
    public synchronized void loseContextOn(DriverCall call, int afterCalls, CudaResult result) {
        if (!result.endsContext()) {
            throw new IllegalArgumentException(result + " does not end a context");
        }
        faults.put(new Where(call, ALL_DEVICES), new Fault(afterCalls, 1, result, true));
    }

    /// Removes all requests, and resets the count of [failed calls][#failedCalls] to 0.
    public synchronized void clear() {
        faults.clear();
        failedCalls = 0;
    }

    /// Returns how many calls have failed by request since the machine was built or [#clear] was last
    /// called. If the number is 0, the program has not made enough calls for any request to take effect.
    public synchronized long failedCalls() {
        return failedCalls;
    }

    /// Returns the fault to inject into this call, or null for none.
    synchronized @Nullable Fault next(DriverCall call, int device) {
        if (faults.isEmpty()) {
            return null;
        }
        Fault own = next(new Where(call, device));
        return own != null ? own : next(new Where(call, ALL_DEVICES));
    }

    private @Nullable Fault next(Where where) {
        Fault fault = faults.get(where);
        if (fault == null) {
            return null;
        }
        if (fault.afterCalls > 0) {
            faults.put(where, new Fault(fault.afterCalls - 1, fault.times, fault.result, fault.isLoss));
            return null;
        }
        if (fault.times <= 1) {
            faults.remove(where);
        } else if (fault.times < Integer.MAX_VALUE) {
            faults.put(where, new Fault(0, fault.times - 1, fault.result));
        }
        if (fault.times <= 0) {
            return null;
        }
        failedCalls++;
        return fault;
    }
}
