package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.events.Observers;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// When a threshold fires, and for which allocators.
final class ThresholdRuleTests {
    private static final long MIB = 1 << 20;

    private final Router router = new Router();
    private final Routes routes = router.routes();
    private final Observers observers = new Observers();
    private final ReservedBytes told = new ReservedBytes("first", 2, observers);
    private final Route first = open("first", 0, told);
    private final Route second = open("second", 0, new ReservedBytes("second", 2, observers));
    private final Route elsewhere = open("elsewhere", 1, new ReservedBytes("elsewhere", 2, observers));
    private final AtomicInteger fired = new AtomicInteger();

    private Route open(String name, int device, ReservedBytes reserved) {
        Ledger ledger = new Ledger(0x7000_0000_0000L + ((long) name.length() << 40));
        return router.routes().open(name, device, ledger, reserved, null, () -> {});
    }

    private Threshold watch(boolean ofReserved, long byteSize, @Nullable Route only) {
        Threshold threshold = new Threshold(0, ofReserved, byteSize, only, fired::incrementAndGet);
        routes.add(threshold);
        return threshold;
    }

    @Test
    void itFiresOnceEachTimeTheSumRisesAboveIt() {
        Threshold threshold = watch(false, 100 * MIB, null);
        long one = router.allocate(first, 60 * MIB, 0);
        assertThat(fired).hasValue(0);
        long two = router.allocate(second, 60 * MIB, 0);
        assertThat(fired).hasValue(1);
        assertThat(threshold.bytes()).isEqualTo(120 * MIB);
        long three = router.allocate(second, 60 * MIB, 0);
        assertThat(fired).hasValue(1);
        router.free(one, 0);
        router.free(two, 0);
        router.free(three, 0);
        assertThat(threshold.bytes()).isZero();
        router.allocate(first, 200 * MIB, 0);
        assertThat(fired).hasValue(2);
    }

    @Test
    void otherDevicesDoNotCount() {
        watch(false, 100 * MIB, null);
        router.allocate(elsewhere, 200 * MIB, 0);
        assertThat(fired).hasValue(0);
    }

    @Test
    void onlyOneAllocatorMayCount() {
        Threshold threshold = watch(false, 100 * MIB, second);
        router.allocate(first, 200 * MIB, 0);
        assertThat(fired).hasValue(0);
        assertThat(threshold.bytes()).isZero();
        router.allocate(second, 200 * MIB, 0);
        assertThat(fired).hasValue(1);
        assertThat(threshold.bytes()).isEqualTo(200 * MIB);
    }

    @Test
    void aSumThatIsAboveItAlreadyFiresAtOnce() {
        router.allocate(first, 200 * MIB, 0);
        watch(false, 100 * MIB, null);
        assertThat(fired).hasValue(1);
    }

    @Test
    void allocatorsThatOpenLaterCount() {
        watch(false, 100 * MIB, null);
        Route third = open("the third", 0, new ReservedBytes("third", 2, observers));
        long block = router.allocate(third, 200 * MIB, 0);
        assertThat(fired).hasValue(1);
        router.free(block, 0);
        router.routes().close(third);
        assertThat(third.meter.thresholds).isEmpty();
        router.allocate(first, 200 * MIB, 0);
        assertThat(fired).hasValue(2);
    }

    @Test
    void anAllocatorCountsUntilItsLastRouteDrains() {
        Route sibling = router.routes().openSibling(first, new Ledger(0x6000_0000_0000L), null, () -> {});
        watch(false, 100 * MIB, null);
        router.routes().close(sibling);
        router.allocate(first, 200 * MIB, 0);
        assertThat(fired).hasValue(1);
    }

    @Test
    void aThresholdThatWasRemovedFiresNoMore() {
        Threshold removed = watch(false, 100 * MIB, null);
        Threshold stays = watch(false, 150 * MIB, null);
        routes.remove(removed);
        router.allocate(first, 200 * MIB, 0);
        assertThat(fired).hasValue(1);
        routes.remove(stays);
        assertThat(first.meter.thresholds).isEmpty();
        assertThat(second.meter.thresholds).isEmpty();
    }

    @Test
    void reservedBytesCountAsTheyAreTold() {
        Threshold threshold = watch(true, 100 * MIB, null);
        told.reservedChanged(0, 100 * MIB);
        assertThat(fired).as("not above").hasValue(0);
        told.reservedChanged(0, 1);
        assertThat(fired).hasValue(1);
        assertThat(threshold.bytes()).isEqualTo(100 * MIB + 1);
        told.reservedChanged(0, -MIB);
        told.reservedChanged(0, 2 * MIB);
        assertThat(fired).hasValue(2);
        told.reservedChanged(0, -MIB - 1);
        assertThat(threshold.bytes()).isEqualTo(100 * MIB);
        told.reservedChanged(1, 500 * MIB);
        assertThat(fired).hasValue(2);
        long block = router.allocate(second, MIB, 0);
        assertThat(threshold.bytes())
                .as("it tells nothing, so what is requested counts")
                .isEqualTo(101 * MIB);
        assertThat(fired).hasValue(3);
        router.free(block, 0);
    }

    @Test
    void reportsOfAnAllocatorBecomeEvents() {
        List<MemoryEvent> events = new ArrayList<>();
        observers.add(new Observers.Observer(events::add, true));
        told.segmentAcquired(1, 100, 10);
        told.pageMoved(1, 100, 200, 10);
        told.freeDeferred(1, 200, 5);
        told.freeCompleted(1, 200, 5);
        told.segmentReleased(1, 100, 10);
        observers.deliver();
        assertThat(events)
                .containsExactly(
                        new MemoryEvent.SegmentAcquired("first", 1, 100, 10),
                        new MemoryEvent.PageMoved("first", 1, 100, 200, 10),
                        new MemoryEvent.FreeDeferred("first", 1, 200, 5),
                        new MemoryEvent.FreeCompleted("first", 1, 200, 5),
                        new MemoryEvent.SegmentReleased("first", 1, 100, 10));
    }
}
