package io.cistern.guice;

import com.google.inject.Inject;
import com.google.inject.ProvisionException;
import com.google.inject.Singleton;
import com.google.inject.spi.Message;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.adaptors.AllocationListener;
import io.cistern.cuda.CisternException;
import io.cistern.internal.names.Failures;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Opens the device memory and pools of an injector together, and closes them together. If some can't be
/// opened, it reports all of them, each with the line that requested it, and leaves nothing open.
@Singleton
final class Resources implements CisternLifecycle {
    private final DeviceMemory memory;
    private final boolean own;
    private final boolean listened;
    private final Map<String, MemoryPool> pools = new LinkedHashMap<>();
    private final List<Message> failures = new ArrayList<>();
    private boolean closed;

    @Inject
    Resources(
            Plan plan,
            Set<AllocatorProvider> allocators,
            Set<SegmentSourceProvider> sources,
            Set<AllocationListener> listeners,
            Optional<MemoryLimit> limit) {
        own = plan.driver().isPresent();
        listened = !listeners.isEmpty();
        List<AllocatorProvider> providers = new ArrayList<>(allocators);
        if (listened) {
            providers.add(new ListeningProvider(Set.copyOf(listeners)));
        }
        memory = own ? opened(plan, providers, List.copyOf(sources), limit) : system(plan, providers, sources, limit);
        plan.pools().forEach(pool -> attempt(pool.source(), () -> open(pool.what())));
        plan.current().ifPresent(current -> attempt(current.source(), () -> makeCurrent(current.what())));
        if (listened && plan.current().isEmpty()) {
            attempt(
                    plan.source(),
                    () -> makeCurrent(memory.currents()
                            .catalog()
                            .choose(memory.environment())
                            .spec()
                            .text()));
        }
        if (!failures.isEmpty()) {
            Failures all = new Failures();
            all.add(new ProvisionException(failures));
            all.gather(this::close);
            all.rethrow();
        }
    }

    private static DeviceMemory opened(
            Plan plan,
            List<AllocatorProvider> allocators,
            List<SegmentSourceProvider> sources,
            Optional<MemoryLimit> limit) {
        try {
            DeviceMemory.Builder builder =
                    DeviceMemory.builder(plan.driver().orElseThrow()).catalog(Catalog.discover(allocators, sources));
            limit.ifPresent(builder::limit);
            return builder.open();
        } catch (CisternException e) {
            throw new ProvisionException(List.of(message(plan.source(), e)));
        }
    }

    private static DeviceMemory system(
            Plan plan,
            List<AllocatorProvider> allocators,
            Set<SegmentSourceProvider> sources,
            Optional<MemoryLimit> limit) {
        if (!allocators.isEmpty() || !sources.isEmpty() || limit.isPresent()) {
            throw new ProvisionException(List.of(new Message(
                    List.of(plan.source()),
                    "the process's own device memory takes no allocators, sources, listeners or limits from an"
                            + " injector: create the module with CisternModule.on(driver)",
                    null)));
        }
        return DeviceMemory.system();
    }

    private void open(PoolConfiguration configuration) {
        MemoryPool.Builder builder = MemoryPool.builder(memory)
                .spec(listened ? around(allocatorOf(configuration.spec())) : configuration.spec())
                .tag(configuration.name());
        configuration.limitBytes().ifPresent(builder::limitBytes);
        pools.put(configuration.name(), builder.open());
    }

    /// Runs last, because it can't be undone. After a failure it only checks whether the allocator can be
    /// opened.
    private void makeCurrent(String spec) {
        if (failures.isEmpty()) {
            memory.setCurrent(around(spec));
        } else {
            memory.open(around(spec)).close();
        }
    }

    private String around(String spec) {
        return listened ? ListeningProvider.around(spec) : spec;
    }

    /// Returns the spec of the pool's allocator: a bare source's spec means `caching` on that source.
    private String allocatorOf(String spec) {
        String name = AllocatorSpec.parse(spec).name();
        boolean isAllocator = memory.currents().catalog().entries().stream()
                .anyMatch(entry ->
                        entry.kind() == Catalog.Kind.ALLOCATOR && entry.name().equals(name));
        return isAllocator
                ? spec
                : "caching:source=\"" + spec.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private void attempt(Object source, Runnable opening) {
        try {
            opening.run();
        } catch (RuntimeException e) {
            failures.add(message(source, e));
        }
    }

    private static Message message(Object source, RuntimeException failure) {
        return new Message(List.of(source), String.valueOf(failure.getMessage()), failure);
    }

    DeviceMemory memory() {
        return memory;
    }

    MemoryPool pool(String name) {
        MemoryPool pool = pools.get(name);
        if (pool == null) {
            throw new IllegalStateException("no pool is named '" + name + "'");
        }
        return pool;
    }

    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        Failures all = new Failures();
        new ArrayList<>(pools.values()).reversed().forEach(pool -> all.gather(pool::close));
        if (own) {
            all.gather(memory::close);
        }
        all.rethrow();
    }
}
