package io.cistern.internal.registry;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.routing.Routes;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// Which limits keep their routes, and whose routes serve the next one. All limits here stay reachable, so a test
/// says which of them the program has forgotten.
class LimitedRoutesTests {
    private static final int DEVICES = 2;

    /// Many more than keep their routes while nobody uses them.
    private static final int MANY = 200;

    private final Router router = new Router();
    private final Routes routing = router.routes();
    private final AtomicLong next = new AtomicLong(1 << 20);
    private final DeviceAllocator allocator = new DeviceAllocator() {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return next.getAndAdd(4096);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    };
    private final Route[] unlimited = {
        routing.open("test", 0, allocator, null, () -> {}), routing.open("test", 1, allocator, null, () -> {})
    };
    private final AtomicInteger opened = new AtomicInteger();
    private final AtomicInteger drained = new AtomicInteger();
    private @Nullable Budgets ofDevices;
    private final LimitedRoutes limited = new LimitedRoutes(
            routing, allocator, unlimited, _ -> ofDevices, opened::incrementAndGet, drained::incrementAndGet);
    private final List<LimitHandle> limits = new ArrayList<>();

    private LimitHandle limit() {
        LimitHandle made = LimitHandle.of("limit " + limits.size(), 1 << 20, null);
        limits.add(made);
        return made;
    }

    private LimitedRoutes.Use of(LimitHandle limit) {
        return limited.of(limit);
    }

    /// The routes of a new limit, which a scope has used.
    private LimitedRoutes.Use used() {
        LimitedRoutes.Use use = of(limit());
        use.beginScope();
        use.endScope();
        return use;
    }

    private static void forget(LimitedRoutes.Use use) {
        use.clear();
        use.enqueue();
    }

    private static void assertCharged(LimitedRoutes.Use use, LimitHandle limit) {
        assertThat(use.routes).hasSize(DEVICES).allMatch(route -> Routes.isCharged(route, limit.budget()));
    }

    @Test
    void aLimitHasOneRouteForEachDevice() {
        LimitHandle limit = limit();
        LimitedRoutes.Use use = of(limit);
        assertThat(of(limit)).isSameAs(use);
        assertThat(use.routes).extracting(Route::device).containsExactly(0, 1);
        assertCharged(use, limit);
        assertThat(limited.all()).containsExactly(use.routes);
        assertThat(opened).hasValue(DEVICES);
        LimitedRoutes.Use other = used();
        assertThat(limited.limitOf(use.routes[1])).isSameAs(limit);
        assertThat(limited.limitOf(other.routes[1])).isSameAs(limits.getLast());
        assertThat(limited.limitOf(unlimited[1])).isNull();
    }

    @Test
    void whatNoScopeUsesServesTheNextLimits() {
        LimitedRoutes.Use first = used();
        Set<Route> before = Set.of(first.routes);
        for (int i = 0; i < MANY; i++) {
            assertCharged(used(), limits.getLast());
        }
        assertThat(limited.count()).as("64 idle ones, and one in use").isEqualTo(65);
        assertThat(limited.all()).hasSize(65 * DEVICES).containsAll(before);
        assertThat(opened).hasValue(65 * DEVICES);
        LimitedRoutes.Use again = of(limits.getFirst());
        assertThat(again).isNotSameAs(first);
        assertCharged(again, limits.getFirst());
    }

    @Test
    void whatAScopeOrOtherCodeUsesStaysWithItsLimit() {
        LimitedRoutes.Use inScope = of(limit());
        inScope.beginScope();
        inScope.beginScope();
        inScope.endScope();
        LimitedRoutes.Use kept = used();
        kept.keep();
        for (int i = 0; i < MANY; i++) {
            used();
        }
        assertThat(of(limits.get(0))).isSameAs(inScope);
        assertThat(of(limits.get(1))).isSameAs(kept);
        assertCharged(inScope, limits.get(0));
        assertCharged(kept, limits.get(1));
    }

    @Test
    void routesWithLiveBlocksServeOthersOnceTheseAreFreed() {
        List<Long> blocks = new ArrayList<>();
        for (int i = 0; i < MANY; i++) {
            blocks.add(router.allocate(used().routes[1], 100, 0));
        }
        assertThat(limited.all()).hasSize(MANY * DEVICES);
        for (int i = 0; i < MANY; i++) {
            assertThat(limits.get(i).budget().usedBytes()).isEqualTo(100);
        }
        blocks.forEach(block -> router.free(block, 0));
        Set<Route> serving = new HashSet<>();
        for (int i = 0; i < 2 * MANY; i++) {
            serving.addAll(Arrays.asList(used().routes));
        }
        assertThat(serving).hasSize(MANY * DEVICES);
        assertThat(opened).hasValue(MANY * DEVICES);
    }

    @Test
    void routesOfAForgottenLimitServeTheNextOnceTheirBlocksAreFreed() {
        List<Long> blocks = new ArrayList<>();
        Set<Route> left = new HashSet<>();
        for (int i = 0; i < 10; i++) {
            LimitedRoutes.Use use = used();
            left.addAll(Arrays.asList(use.routes));
            blocks.add(router.allocate(use.routes[i % DEVICES], 100, 0));
            forget(use);
        }
        LimitedRoutes.Use meanwhile = of(limit());
        assertThat(meanwhile.routes).doesNotContainAnyElementsOf(left);
        blocks.forEach(block -> router.free(block, 0));
        Set<Route> serving = new HashSet<>();
        for (int i = 0; i < 10; i++) {
            LimitedRoutes.Use use = of(limit());
            assertCharged(use, limits.getLast());
            serving.addAll(Arrays.asList(use.routes));
        }
        assertThat(serving).isEqualTo(left);
    }

    /// Else two limits would share routes.
    @Test
    void routesThatServeAnotherLimitAreNotLeftByTheFormerOne() {
        LimitedRoutes.Use former = used();
        Set<Route> routes = Set.of(former.routes);
        LimitedRoutes.Use successor = former;
        while (successor == former || !routes.equals(Set.of(successor.routes))) {
            successor = used();
            assertThat(limits.size()).isLessThan(MANY);
        }
        successor.keep();
        forget(former);
        assertThat(of(limit()).routes).doesNotContainAnyElementsOf(routes);
        assertCharged(successor, limits.get(limits.size() - 2));
    }

    @Test
    void allRoutesOfADeviceAreChargedToAFurtherBudget() {
        List<LimitedRoutes.Use> uses = List.of(of(limit()), of(limit()), of(limit()));
        uses.forEach(use -> router.allocate(use.routes[1], 100, 0));
        List<Route> former = uses.stream().map(use -> use.routes[1]).toList();
        List<Route> ofOtherDevice = uses.stream().map(use -> use.routes[0]).toList();
        Budget added = new Budget("device", 1000, null);
        opened.set(0);
        assertThat(charge(added)).containsExactlyInAnyOrderElementsOf(former);
        assertThat(uses).allMatch(use -> Routes.isCharged(use.routes[1], added));
        assertThat(limited.all())
                .hasSize(uses.size() * DEVICES)
                .doesNotContainAnyElementsOf(former)
                .containsAll(ofOtherDevice)
                .containsAll(uses.stream().map(use -> use.routes[1]).toList());
        assertThat(added.usedBytes()).as("of blocks that are alive").isEqualTo(300);
        assertThat(charge(added)).as("that is done").isEmpty();
        assertThat(opened).hasValue(uses.size());
    }

    /// Charges device 1 and returns the routes that are to be closed.
    private List<Route> charge(Budget added) {
        ofDevices = Budgets.of(null, added);
        @Nullable Route[] replaced = new Route[limited.count()];
        limited.charge(1, added, replaced);
        return Stream.of(replaced).filter(Objects::nonNull).toList();
    }

    @Test
    void blocksOfAForgottenLimitCountInAFurtherBudgetToo() {
        router.allocate(of(LimitHandle.of("forgotten", 1000, null)).routes[1], 50, 0);
        Budget added = new Budget("device", 1000, null);
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
            while (added.usedBytes() == 0) {
                System.gc();
                if (limited.count() == 0) {
                    charge(added);
                }
            }
        });
        assertThat(added.usedBytes()).isEqualTo(50);
    }
}
