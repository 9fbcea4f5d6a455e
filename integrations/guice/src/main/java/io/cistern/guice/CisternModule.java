package io.cistern.guice;

import com.google.inject.AbstractModule;
import com.google.inject.Key;
import com.google.inject.Provider;
import com.google.inject.Provides;
import com.google.inject.Singleton;
import com.google.inject.matcher.Matchers;
import com.google.inject.multibindings.Multibinder;
import com.google.inject.multibindings.OptionalBinder;
import com.google.inject.name.Names;
import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.adaptors.AllocationListener;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;

/// Binds device memory, allocators and pools for injection.
///
/// ```java
/// Injector injector = Guice.createInjector(
///         CisternModule.on(driver).current("caching:fit=tight").pool("gradients", "vmm"));
/// try (CisternLifecycle memory = injector.getInstance(CisternLifecycle.class)) { … }
/// ```
///
/// | bound | to |
/// |---|---|
/// | [DeviceMemory], [Catalog] | those of the injector |
/// | [Allocator] | the current one of device 0 at the time of the request |
/// | [MemoryPool], [PoolConfiguration] with `@Named("gradients")` or `@Pool("gradients")` | that pool |
/// | [CisternLifecycle] | the object that closes all of these |
///
/// | taken from the injector | used |
/// |---|---|
/// | `Multibinder` of [AllocatorProvider] and [SegmentSourceProvider] | in addition to discovered providers |
/// | `Multibinder` of [AllocationListener] | to report the blocks of the current allocator and of all pools |
/// | `OptionalBinder` of [MemoryLimit] | to limit all blocks of all allocators together |
///
/// Methods with [InPool] run in a scope. The module opens everything when the injector is created. It
/// reports all invalid specs, duplicate pool names, and methods whose [InPool] names an unknown pool
/// together, each with the source line that declares it.
///
/// **Live memory** moves only while the program pauses its work on the device, and the module registers no
/// pause. If your program can pause its work, register a pause with [DeviceMemory#listeners].
///
/// **Threads.** One thread creates and installs a module.
public final class CisternModule extends AbstractModule {
    private final Optional<CudaDriver> driver;
    private final Object source;
    private final List<Declaration<PoolConfiguration>> pools = new ArrayList<>();
    private Optional<Declaration<String>> current = Optional.empty();

    private CisternModule(Optional<CudaDriver> driver) {
        this.driver = driver;
        this.source = Declaration.here("").source();
    }

    /// Returns a module that opens device memory on a driver for the injector. The program itself
    /// closes the driver.
    public static CisternModule on(CudaDriver driver) {
        return new CisternModule(Optional.of(driver));
    }

    /// Returns a module for the process's own device memory. An injector can only add pools to it and
    /// choose its current allocator.
    public static CisternModule system() {
        return new CisternModule(Optional.empty());
    }

    /// Makes an allocator current. Without this call, the settings choose the current allocator.
    ///
    /// @param spec the allocator's spec
    public CisternModule current(String spec) {
        current = Optional.of(Declaration.here(spec));
        return this;
    }

    /// Adds a pool, which is opened when the injector is created.
    ///
    /// @param name the pool's name at injection points
    /// @param spec the spec, as for [io.cistern.MemoryPool.Builder#spec]
    public CisternModule pool(String name, String spec) {
        pools.add(Declaration.here(new PoolConfiguration(name, spec, OptionalLong.empty())));
        return this;
    }

    /// Adds a pool with a limit, which is opened when the injector is created.
    ///
    /// @param name the pool's name at injection points
    /// @param spec the spec, as for [io.cistern.MemoryPool.Builder#spec]
    /// @param limitBytes the maximum requested bytes of all its live blocks
    public CisternModule pool(String name, String spec, long limitBytes) {
        pools.add(Declaration.here(new PoolConfiguration(name, spec, OptionalLong.of(limitBytes))));
        return this;
    }

    @Override
    protected void configure() {
        Multibinder.newSetBinder(binder(), AllocatorProvider.class);
        Multibinder.newSetBinder(binder(), SegmentSourceProvider.class);
        Multibinder.newSetBinder(binder(), AllocationListener.class);
        OptionalBinder.newOptionalBinder(binder(), MemoryLimit.class);
        current.ifPresent(each -> checkSpec(each.what(), each.source()));
        Set<String> names = new HashSet<>();
        for (Declaration<PoolConfiguration> pool : pools) {
            checkSpec(pool.what().spec(), pool.source());
            if (names.add(pool.what().name())) {
                bindPool(pool);
            } else {
                binder().withSource(pool.source())
                        .addError("two pools are named '%s'", pool.what().name());
            }
        }
        bind(Plan.class).toInstance(new Plan(driver, current, List.copyOf(pools), source));
        bind(Resources.class).asEagerSingleton();
        bindInterceptor(
                Matchers.any(),
                Matchers.annotatedWith(InPool.class),
                new PoolInterceptor(getProvider(Resources.class)));
        bindListener(Matchers.any(), new PoolMethods(names));
    }

    private void checkSpec(String spec, Object where) {
        try {
            AllocatorSpec.parse(spec);
        } catch (ConfigurationException e) {
            binder().withSource(where).addError("%s", e.getMessage());
        }
    }

    private void bindPool(Declaration<PoolConfiguration> pool) {
        String name = pool.what().name();
        Provider<Resources> resources = getProvider(Resources.class);
        for (var qualifier : List.of(Names.named(name), new PoolQualifier(name))) {
            binder().withSource(pool.source())
                    .bind(Key.get(MemoryPool.class, qualifier))
                    .toProvider((Provider<MemoryPool>) () -> resources.get().pool(name));
            binder().withSource(pool.source())
                    .bind(Key.get(PoolConfiguration.class, qualifier))
                    .toInstance(pool.what());
        }
    }

    /// Not a binding to `Resources`: Guice would create that a second time after a failure.
    @Provides
    CisternLifecycle lifecycle(Resources resources) {
        return resources;
    }

    @Provides
    @Singleton
    DeviceMemory memory(Resources resources) {
        return resources.memory();
    }

    @Provides
    Catalog catalog(DeviceMemory memory) {
        return memory.currents().catalog();
    }

    @Provides
    Allocator allocator(DeviceMemory memory) {
        return memory.current(0);
    }
}
