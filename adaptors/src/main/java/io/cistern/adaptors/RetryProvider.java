package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Provides `retry`: a [RetryAllocator] that has its upstream give back idle memory, waits for other threads to
/// free, and tries again. Options: `attempts`, how often to try again, 3 by default; `wait_millis`, how long to
/// wait before each, 0 by default; `upstream`, a spec.
public final class RetryProvider extends AdaptorProvider {
    private static final int MAX_ATTEMPTS = 1_000_000;
    private static final int MAX_WAIT_MILLIS = 3_600_000;

    /// For [java.util.ServiceLoader].
    public RetryProvider() {}

    @Override
    public String name() {
        return "retry";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String spec) {
        long attempts = context.options().number("attempts", 1, MAX_ATTEMPTS).orElse(3L);
        long waitMillis =
                context.options().number("wait_millis", 0, MAX_WAIT_MILLIS).orElse(0L);
        DeviceAllocator upstream = context.upstream(spec);
        return new RetryAllocator(upstream, (failure, attempt) -> {
            if (attempt > attempts) {
                return false;
            }
            upstream.trim(failure.device(), 0);
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(waitMillis));
            return true;
        });
    }
}
