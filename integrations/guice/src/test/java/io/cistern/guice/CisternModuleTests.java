package io.cistern.guice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.inject.AbstractModule;
import com.google.inject.CreationException;
import com.google.inject.Guice;
import com.google.inject.Inject;
import com.google.inject.Injector;
import com.google.inject.Key;
import com.google.inject.Module;
import com.google.inject.multibindings.Multibinder;
import com.google.inject.multibindings.OptionalBinder;
import com.google.inject.name.Names;
import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.adaptors.AllocationListener;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.jvm.ClosingTypes;
import io.cistern.jvm.Cycles;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import jakarta.inject.Named;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CisternModuleTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();

    @AfterEach
    void everythingIsGivenBack() {
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(256 * MIB);
        gpu.close();
    }

    @Test
    void theCurrentAllocatorAndPoolsAreInjected() {
        Injector injector = Guice.createInjector(CisternModule.on(gpu)
                .current("direct")
                .pool("gradients", "linear")
                .pool("small", "caching", 4 * MIB));
        try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
            Trainer trainer = injector.getInstance(Trainer.class);

            assertThat(trainer.allocator.name()).isEqualTo("direct");
            assertThat(trainer.gradients.spec().text()).isEqualTo("caching:source=linear");
            assertThat(trainer.same).isSameAs(trainer.gradients);
            assertThat(injector.getInstance(Key.get(PoolConfiguration.class, Names.named("small")))
                            .limitBytes())
                    .hasValue(4 * MIB);
            assertThatThrownBy(() -> injector.getInstance(Key.get(MemoryPool.class, Names.named("small")))
                            .allocate(5 * MIB, 0, 0))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            trainer.memory.setCurrent("caching");
            assertThat(injector.getInstance(Allocator.class).name()).isEqualTo("caching");
            assertThat(injector.getInstance(Catalog.class))
                    .isSameAs(trainer.memory.currents().catalog());
        }
    }

    @Test
    void closedInjectorsLeaveNothing() throws Exception {
        assertThat(ClosingTypes.beside(CisternModule.class)).containsExactly(CisternLifecycle.class);
        Cycles.assertNothingStays(1000, () -> {
            Injector injector = Guice.createInjector(CisternModule.on(gpu)
                    .current("direct")
                    .pool("gradients", "caching")
                    .pool("small", "caching", 4 * MIB));
            try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
                Trainer trainer = injector.getInstance(Trainer.class);
                trainer.memory.free(trainer.step(), 0);
            }
        });
    }

    @Test
    void aMethodRunsInItsPool() {
        Injector injector = Guice.createInjector(CisternModule.on(gpu).pool("gradients", "caching"));
        try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
            Trainer trainer = injector.getInstance(Trainer.class);
            long inside = trainer.step();
            long outside = trainer.memory.allocate(MIB, 0, 0);

            assertThat(trainer.gradients.liveBlockCount()).isEqualTo(1);
            trainer.memory.free(inside, 0);
            trainer.memory.free(outside, 0);
            assertThatThrownBy(trainer::failing).hasMessage("in the pool");
            assertThat(trainer.gradients.useCount()).isEqualTo(1);
        }
    }

    @Test
    void aPoolStaysInUseUntilAnAsynchronousMethodHasCompleted() {
        Injector injector = Guice.createInjector(CisternModule.on(gpu).pool("gradients", "caching"));
        CompletableFuture<Long> done;
        Trainer trainer;
        try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
            trainer = injector.getInstance(Trainer.class);
            done = trainer.later();
            assertThat(trainer.gradients.useCount()).isEqualTo(2);
            trainer.gradients.close();
            assertThat(trainer.gradients.isDrained()).isFalse();
            done.complete(1L);
            assertThat(trainer.gradients.isDrained()).isTrue();
        }
    }

    @Test
    void contributedAllocatorsStandBesideThoseFound() {
        Injector injector = Guice.createInjector(
                CisternModule.on(gpu).current("mine"), contributing(AllocatorProvider.class, new Mine("mine")));
        try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
            DeviceMemory memory = injector.getInstance(DeviceMemory.class);
            assertThat(memory.current(0).name()).isEqualTo("mine");
            memory.free(memory.allocate(MIB, 0, 0), 0);
            assertThat(memory.currents().catalog().entries())
                    .extracting(Catalog.Entry::name)
                    .contains("mine", "caching", "direct");
        }
    }

    @Test
    void aContributedAllocatorMayNotTakeAName() {
        assertThatThrownBy(() -> Guice.createInjector(
                        CisternModule.on(gpu).current("caching"),
                        contributing(AllocatorProvider.class, new Mine("caching"))))
                .isInstanceOf(CreationException.class)
                .hasMessageContaining("shares its name with");
    }

    @Test
    void listenersHearOfTheCurrentAllocatorAndOfPools() {
        AtomicInteger heard = new AtomicInteger();
        AllocationListener listener = new AllocationListener() {
            @Override
            public void allocated(long address, long byteSize, int device, long stream) {
                heard.incrementAndGet();
            }
        };
        Injector injector = Guice.createInjector(
                CisternModule.on(gpu).pool("gradients", "linear"), contributing(AllocationListener.class, listener));
        try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
            Trainer trainer = injector.getInstance(Trainer.class);
            trainer.memory.free(trainer.step(), 0);
            trainer.memory.free(trainer.memory.allocate(MIB, 0, 0), 0);
            assertThat(heard).hasValue(2);
        }
    }

    @Test
    void aLimitIsChargedWithEverything() {
        Module limit = new AbstractModule() {
            @Override
            protected void configure() {
                OptionalBinder.newOptionalBinder(binder(), MemoryLimit.class)
                        .setBinding()
                        .toInstance(MemoryLimit.of("application", 8 * MIB));
            }
        };
        Injector injector = Guice.createInjector(CisternModule.on(gpu), limit);
        try (CisternLifecycle _ = injector.getInstance(CisternLifecycle.class)) {
            DeviceMemory memory = injector.getInstance(DeviceMemory.class);
            assertThatThrownBy(() -> memory.allocate(9 * MIB, 0, 0)).hasMessageContaining("application");
        }
    }

    @Test
    void allMistakesAreToldAtOnceWithTheirLines() {
        assertThatThrownBy(() -> Guice.createInjector(
                        CisternModule.on(gpu)
                                .current("caching:")
                                .pool("one", "caching:x")
                                .pool("two", "caching")
                                .pool("two", "direct"),
                        new AbstractModule() {
                            @Override
                            protected void configure() {
                                bind(Mistaken.class);
                            }
                        }))
                .isInstanceOf(CreationException.class)
                .hasMessageContaining("spec 'caching:': a key is expected")
                .hasMessageContaining("spec 'caching:x': '=' is expected")
                .hasMessageContaining("two pools are named 'two'")
                .hasMessageContaining("@InPool(\"tow\") on")
                .hasMessageContaining("@InPool(\"free\") on")
                .hasMessageContaining("no pool has that name; known: [one, two]")
                .hasMessageContaining("a method that can't be overridden can't be run in a scope")
                .hasMessageContaining("(CisternModuleTests.java:");
    }

    @Test
    void whatCannotBeOpenedIsToldAtOnceAndNothingStaysOpen() {
        assertThatThrownBy(() -> Guice.createInjector(CisternModule.on(gpu)
                        .current("cacing")
                        .pool("good", "caching")
                        .pool("bad", "caching:slac=1")))
                .isInstanceOf(CreationException.class)
                .hasMessageContaining("no allocator is named 'cacing'; known, nearest first: caching")
                .hasMessageContaining("'caching' has no option 'slac'")
                .hasMessageContaining("CisternModuleTests.java")
                .asInstanceOf(InstanceOfAssertFactories.type(CreationException.class))
                .extracting(CreationException::getErrorMessages, InstanceOfAssertFactories.COLLECTION)
                .hasSize(2);
    }

    @Test
    void theProcesssCurrentAllocatorStaysIfSomethingCannotBeOpened() {
        DeviceMemory memory = DeviceMemory.system();
        Allocator before = memory.current(0);
        for (String[] specs : new String[][] {{"direct", "cacing"}, {"direct:x=1", "caching"}}) {
            assertThatThrownBy(() -> Guice.createInjector(
                            CisternModule.system().current(specs[0]).pool("one", specs[1])))
                    .isInstanceOf(CreationException.class);
            assertThat(memory.current(0)).isSameAs(before);
            assertThat(memory.allocators()).containsExactly(before);
        }
    }

    @Test
    void whatTheDriverRefusesIsToldWithItsLineToo() {
        assertThatThrownBy(() -> Guice.createInjector(
                        CisternModule.on(gpu).current("cacing").pool("bad", "mine"),
                        contributing(AllocatorProvider.class, new Refused())))
                .isInstanceOf(CreationException.class)
                .hasMessageContaining("no allocator is named 'cacing'")
                .hasMessageContaining("cuMemAlloc_v2(device=0) failed")
                .hasMessageContaining("CisternModuleTests.java");
    }

    @Test
    void anIllegalLimitIsToldWithItsLineAndNothingStaysOpen() {
        assertThatThrownBy(() -> Guice.createInjector(
                        CisternModule.on(gpu).pool("good", "failing").pool("bad", "caching", -1),
                        contributing(AllocatorProvider.class, new FailingAtClose())))
                .isInstanceOf(CreationException.class)
                .hasMessageContaining("limitBytes")
                .hasMessageContaining("CisternModuleTests.java");
        assertThat(FailingAtClose.CLOSED.getAndSet(0)).isPositive();
    }

    @Test
    void aPoolThatFailsToCloseKeepsNoOtherOpen() {
        Injector injector = Guice.createInjector(
                CisternModule.on(gpu).pool("one", "failing").pool("other", "failing"),
                contributing(AllocatorProvider.class, new FailingAtClose()));
        DeviceMemory memory = injector.getInstance(DeviceMemory.class);
        assertThatThrownBy(injector.getInstance(CisternLifecycle.class)::close).hasMessageContaining("as intended");
        assertThat(FailingAtClose.CLOSED.getAndSet(0)).isEqualTo(2);
        assertThatThrownBy(() -> memory.open("direct")).isInstanceOf(IllegalStateException.class);
    }

    private static <T> Module contributing(Class<T> type, T instance) {
        return new AbstractModule() {
            @Override
            protected void configure() {
                Multibinder.newSetBinder(binder(), type).addBinding().toInstance(instance);
            }
        };
    }

    static class Trainer {
        @Inject
        DeviceMemory memory;

        @Inject
        Allocator allocator;

        @Inject
        @Named("gradients")
        MemoryPool gradients;

        @Inject
        @Pool("gradients")
        MemoryPool same;

        @InPool("gradients")
        long step() {
            return memory.allocate(MIB, 0, 0);
        }

        @InPool("gradients")
        void failing() {
            throw new IllegalStateException("in the pool");
        }

        @InPool("gradients")
        CompletableFuture<Long> later() {
            return new CompletableFuture<>();
        }
    }

    interface Stranger {
        @InPool("free")
        default void misspelledToo() {}
    }

    static class Mistaken implements Stranger {
        @InPool("tow")
        void misspelled() {}

        @InPool("two")
        private void unreachable() {}
    }

    private record Mine(String name) implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            DeviceAllocator upstream = context.upstream("direct");
            return new DeviceAllocator() {
                @Override
                public long allocate(long byteSize, int device, long stream) {
                    return upstream.allocate(byteSize, device, stream);
                }

                @Override
                public void free(long address, long byteSize, int device, long stream) {
                    upstream.free(address, byteSize, device, stream);
                }
            };
        }
    }

    private record FailingAtClose() implements AllocatorProvider {
        static final AtomicInteger CLOSED = new AtomicInteger();

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "failing";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new DeviceAllocator() {
                @Override
                public long allocate(long byteSize, int device, long stream) {
                    return 0;
                }

                @Override
                public void free(long address, long byteSize, int device, long stream) {}

                @Override
                public void close() {
                    CLOSED.incrementAndGet();
                    throw new IllegalStateException("as intended");
                }
            };
        }
    }

    private record Refused() implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "mine";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            throw new CudaException(DriverCall.MEM_ALLOC, CudaResult.UNKNOWN.code(), "device=0");
        }
    }
}
