package io.cistern.guice;

import com.google.inject.Provider;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;

/// Runs a method in the scope of the pool that its [InPool] names.
///
/// @param resources the holder of the pools
record PoolInterceptor(Provider<Resources> resources) implements MethodInterceptor {
    private static final int ANY_DEVICE = 0;

    @Override
    public @Nullable Object invoke(MethodInvocation invocation) throws Throwable {
        String name = Objects.requireNonNull(invocation.getMethod().getAnnotation(InPool.class))
                .value();
        MemoryPool pool = resources.get().pool(name);
        try (Scope _ = pool.enter()) {
            @Nullable Object result = invocation.proceed();
            if (result instanceof CompletionStage<?> stage) {
                keepUntilDone(pool, stage);
            }
            return result;
        }
    }

    /// Keeps the pool in use until the stage completes, which may be after the scope has ended.
    private void keepUntilDone(MemoryPool pool, CompletionStage<?> stage) {
        DeviceMemory memory = resources.get().memory();
        memory.pools().begin(pool, ANY_DEVICE);
        memory.pools().end(pool, ANY_DEVICE);
        var _ = stage.whenComplete((_, _) -> memory.pools().release(pool.id()));
    }
}
