package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.internal.names.Failures;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Holds the open pools of one device memory, which are closed with it.
///
/// **Threads.** Any.
final class OpenHandlePools implements AutoCloseable {
    private final Set<HandlePool<?>> open = ConcurrentHashMap.newKeySet();

    private OpenHandlePools() {}

    static OpenHandlePools of(DeviceMemory memory) {
        return memory.moduleSupport().attachment(OpenHandlePools.class, _ -> new OpenHandlePools());
    }

    <H> HandlePool<H> add(HandlePool<H> pool) {
        open.add(pool);
        return pool;
    }

    void remove(HandlePool<?> pool) {
        open.remove(pool);
    }

    @Override
    public void close() {
        Failures failures = new Failures();
        open.forEach(pool -> failures.gather(pool::close));
        failures.rethrow();
    }
}
