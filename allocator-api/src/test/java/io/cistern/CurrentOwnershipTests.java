package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// An allocator that the framework opened closes once it is current nowhere; one that the program opened stays.
class CurrentOwnershipTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final ArrayAllocatorProvider one = new ArrayAllocatorProvider("one");
    private final ArrayAllocatorProvider two = new ArrayAllocatorProvider("two");
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(one, two), List.of(new DriverSource.Linear())))
            .open();

    @AfterEach
    void leavesNothingBehind() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    /// The ways in which another allocator becomes current on all devices.
    static Stream<BiConsumer<DeviceMemory, String>> waysToSet() {
        return Stream.of(
                DeviceMemory::setCurrent,
                (memory, spec) -> memory.currents().set(memory.open(spec)),
                (memory, spec) -> {
                    Allocator next = memory.open(spec);
                    memory.currents().set(0, next);
                    memory.currents().set(1, next);
                },
                (memory, spec) -> {
                    Allocator next = memory.open(spec);
                    memory.currents().compareAndSet(0, memory.current(0), next);
                    memory.currents().compareAndSet(1, memory.current(1), next);
                });
    }

    @ParameterizedTest
    @MethodSource("waysToSet")
    void whatTheFrameworkOpenedClosesOnceItIsCurrentNowhere(BiConsumer<DeviceMemory, String> set) {
        Allocator former = memory.setCurrent("one");
        long block = memory.allocate(100, 1, 0);
        set.accept(memory, "two");
        assertThat(former.isClosed()).isTrue();
        assertThat(former.isDrained()).isFalse();
        memory.free(block, 0);
        assertThat(former.isDrained()).isTrue();
        assertThat(memory.allocators()).containsExactly(memory.current(0));
    }

    @ParameterizedTest
    @MethodSource("waysToSet")
    void whatTheConfigurationChoseClosesToo(BiConsumer<DeviceMemory, String> set) {
        Allocator former = memory.current(0);
        assertThat(memory.current(1)).isSameAs(former);
        set.accept(memory, "two");
        assertThat(former.isDrained()).isTrue();
    }

    @ParameterizedTest
    @MethodSource("waysToSet")
    void whatTheProgramOpenedStaysOpen(BiConsumer<DeviceMemory, String> set) {
        Allocator own = memory.open("one");
        memory.currents().set(own);
        set.accept(memory, "two");
        assertThat(own.isClosed()).isFalse();
        memory.currents().set(own);
        memory.free(memory.allocate(100, 0, 0), 0);
        assertThat(own.statistics(0).allocations()).isOne();
    }

    @Test
    void itStaysWhileItIsCurrentOnAnotherDevice() {
        Allocator former = memory.setCurrent("one");
        memory.currents().set(0, memory.open("two"));
        assertThat(former.isClosed()).isFalse();
        memory.free(memory.allocate(100, 1, 0), 0);
    }

    @Test
    void aSpecMeansTheSameAllocatorWhileThatIsOpen() {
        Allocator first = memory.setCurrent("one");
        assertThat(memory.setCurrent("one")).isSameAs(first);
        assertThat(one.log).containsExactly("one opened");
        memory.setCurrent("two");
        assertThat(memory.setCurrent("one")).isNotSameAs(first);
        assertThat(one.log).containsExactly("one opened", "one closed", "one opened");
    }

    @Test
    void soItDoesIfItsPlugInSetsItAsItOpens() {
        List<Allocator> inside = new ArrayList<>();
        two.whileOpening = () -> {
            two.whileOpening = () -> {};
            inside.add(memory.setCurrent("two"));
        };
        Allocator set = memory.setCurrent("two");
        assertThat(inside).containsExactly(set);
        assertThat(memory.allocators()).containsExactly(set);
    }

    @Test
    void whatTheProgramOpenedIsAnotherAllocatorOfThatSpec() {
        Allocator own = memory.open("one");
        memory.currents().set(own);
        Allocator named = memory.setCurrent("one");
        assertThat(named).isNotSameAs(own);
        memory.setCurrent("two");
        assertThat(named.isClosed()).isTrue();
        assertThat(own.isClosed()).isFalse();
    }

    @Test
    void aSpecThatCanNotBeFollowedChangesNothing() {
        Allocator present = memory.setCurrent("one");
        assertThatThrownBy(() -> memory.setCurrent("three")).isInstanceOf(ConfigurationException.class);
        assertThat(memory.current(0)).isSameAs(present);
        assertThat(memory.allocators()).containsExactly(present);
    }

    @Test
    void anAdaptorAroundItKeepsItOpenUntilItIsClosedItself() {
        Allocator upstream = memory.setCurrent("one");
        Allocator adaptor = memory.open(OpenOptions.around("around", upstream, made -> made));
        memory.currents().set(adaptor);
        memory.free(memory.allocate(100, 0, 0), 0);
        assertThat(one.log).doesNotContain("one closed");
        memory.setCurrent("two");
        adaptor.close();
        assertThat(one.log).contains("one closed");
    }

    /// A plug-in that a change opens may wait for a thread that asks which allocator is current.
    @Test
    void whatIsCurrentIsToldWhileAnotherIsOpened() {
        Allocator former = memory.setCurrent("one");
        List<Allocator> told = new CopyOnWriteArrayList<>();
        two.whileOpening = () -> CompletableFuture.runAsync(() -> {
                    told.add(memory.current(0));
                    assertThat(memory.currents().isCurrent(0, former)).isTrue();
                    memory.free(memory.allocate(100, 0, 0), 0);
                })
                .orTimeout(10, TimeUnit.SECONDS)
                .join();
        memory.setCurrent("two");
        assertThat(told).containsExactly(former);
    }

    /// An exchange replaces two allocators; while it closes the first, somebody puts back the second.
    @Test
    void whatAnExchangeIsAboutToCloseDoesNotBecomeCurrentAgain() {
        try (DeviceMemory each =
                DeviceMemory.builder(gpu).catalog(oneForEachDevice()).open()) {
            List<Allocator> former = List.of(each.current(0), each.current(1));
            List<String> refusals = new ArrayList<>();
            one.whileClosing = () -> {
                for (Runnable back : List.<Runnable>of(
                        () -> each.currents().set(former.get(1)),
                        () -> each.currents().set(1, former.get(1)),
                        () -> each.currents().compareAndSet(1, each.current(1), former.get(1)))) {
                    assertThatIllegalArgumentException()
                            .isThrownBy(back::run)
                            .satisfies(refusal -> refusals.add(refusal.getMessage()));
                }
            };
            Allocator next = each.open("two");
            each.currents().set(next);
            assertThat(refusals).hasSize(3).allMatch(message -> message.contains("two is closed"));
            assertThat(each.current(1)).isSameAs(next);
            each.free(each.allocate(100, 1, 0), 0);
        }
    }

    /// A catalogue that names "one" for device 0 and "two" for device 1.
    private Catalog oneForEachDevice() {
        Catalog all = Catalog.of(List.of(one, two), List.of(new DriverSource.Linear()));
        return (Catalog) Proxy.newProxyInstance(
                Catalog.class.getClassLoader(), new Class<?>[] {Catalog.class}, (_, method, arguments) -> {
                    boolean forDevice = method.getName().equals("choose") && arguments.length == 2;
                    return forDevice
                            ? new Catalog.Choice(AllocatorSpec.parse(arguments[1].equals(0) ? "one" : "two"), "test")
                            : method.invoke(all, arguments);
                });
    }
}
