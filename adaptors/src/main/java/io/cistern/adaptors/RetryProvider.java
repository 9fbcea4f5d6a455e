package io.cistern.adaptors;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Provides `retry`, a [RetryAllocator] that makes its upstream give back idle memory, waits for other
/// threads to free, and tries again. Options: `attempts`, the maximum retries, 3 by default; `wait_millis`,
/// the wait before each retry in milliseconds, 0 by default; `upstream`, a spec.
public final class RetryProvider extends AdaptorProvider {
    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<Long> ATTEMPTS = SpecOption.of(
                "retry",
                "attempts",
                "a whole number from 1 to 1000000",
                "3",
                "the maximum retries of a failed allocation",
                (options, key) -> options.number(key, 1, 1_000_000));
        static final SpecOption<Long> WAIT_MILLIS = SpecOption.of(
                "retry",
                "wait_millis",
                "a whole number from 0 to 3600000",
                "0",
                "the wait before each retry",
                (options, key) -> options.number(key, 0, 3_600_000));
    }

    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public RetryProvider() {}

    @Override
    public String name() {
        return "retry";
    }

    @Override
    List<SpecOption<?>> ownOptions() {
        return List.of(Options.ATTEMPTS, Options.WAIT_MILLIS);
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String spec) {
        long attempts = Options.ATTEMPTS.read(context.options()).orElse(3L);
        long waitMillis = Options.WAIT_MILLIS.read(context.options()).orElse(0L);
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
