package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.Allocator;
import io.cistern.MemoryPool;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import org.junit.jupiter.api.Test;

/// The reason in the refusal of a pool whose source refused.
class RefusalReasonTests extends PoolFixture {
    RefusalReasonTests() {
        super(256 * MIB);
    }

    private record BadSource() implements RangeSource {
        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            throw new DeviceOutOfMemoryException(byteSize, device, "badsrc is empty");
        }

        @Override
        public void release(Segment segment) {}
    }

    private DeviceOutOfMemoryException refused(Allocator allocator, long byteSize) {
        return catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> allocator.allocate(byteSize, DEVICE, stream));
    }

    private static void assertTold(DeviceOutOfMemoryException refused, String reason) {
        assertThat(refused).hasMessageContaining(reason);
        assertThat(refused.detail()).contains(reason);
        OutOfMemoryReport report = refused.report().orElseThrow();
        assertThat(report.text()).contains(reason);
        assertThat(report.advice()).noneMatch(each -> each.contains("raise the limit in its options"));
    }

    @Test
    void aRequestAboveTheUpstreamsLimitIsRefusedByThatLimit() {
        MemoryPool base = builder().tag("base").limitBytes(8 * MIB).open();
        MemoryPool top = builder().upstream(base).tag("top").open();
        Allocator other = memory.open("caching");
        free(other.allocate(MIB, DEVICE, stream));
        DeviceOutOfMemoryException refused = refused(top, 16 * MIB);
        assertTold(refused, "limit of " + 8 * MIB + " bytes (8.00 MiB), 0 of them in use; request less, or raise it");
        assertThat(refused)
                .hasMessageContaining(top.toString())
                .matches(DeviceOutOfMemoryException::isByLimit)
                .matches(DeviceOutOfMemoryException::canNeverFit)
                .message()
                .doesNotContain("largest free block", "compaction", "the device has");
        assertThat(refused.byteSize()).isEqualTo(16 * MIB);
        assertThat(refused.steps()).isEmpty();
        assertThat(other.reservedBytes(DEVICE).orElseThrow()).isPositive();
        assertThat(refused.report().orElseThrow().advice())
                .singleElement()
                .asString()
                .startsWith("a limit refused the request, not the device: ");
    }

    @Test
    void aPoolsLimitHasThePoolsName() {
        for (String tag : new String[] {"", "weights"}) {
            MemoryPool pool = builder().tag(tag).limitBytes(MIB).open();
            assertThat(pool.limit().name()).isEqualTo(pool.toString()).startsWith("pool " + pool.id());
            assertThat(refused(pool, 2 * MIB)).hasMessageContaining("; " + pool + ": limit of " + MIB + " bytes");
        }
    }

    @Test
    void theUpstreamsLimitIsPassedOnThroughEachPool() {
        MemoryPool base = builder().tag("base").limitBytes(8 * MIB).open();
        MemoryPool middle = builder().upstream(base).tag("middle").open();
        MemoryPool top = builder().upstream(middle).tag("top").open();
        long block = top.allocate(6 * MIB, DEVICE, stream);
        DeviceOutOfMemoryException refused = refused(top, 6 * MIB);
        assertTold(refused, "limit of " + 8 * MIB + " bytes (8.00 MiB), " + 6 * MIB + " of them in use");
        assertThat(refused)
                .matches(DeviceOutOfMemoryException::isByLimit)
                .matches(full -> !full.canNeverFit(), "may be retried after a free");
        free(block);
    }

    /// Pools that are built on the limited one may have idle memory that is charged to its limit.
    @Test
    void idleMemoryThatIsChargedToTheUpstreamsLimitGoesBack() {
        MemoryPool base = builder().tag("base").limitBytes(8 * MIB).open();
        MemoryPool top = builder().upstream(base).tag("top").open();
        MemoryPool sibling = builder().upstream(base).tag("sibling").open();
        long other = gpu.streams().create(DEVICE);
        memory.free(top.allocate(6 * MIB, DEVICE, other), other);
        long block = top.allocate(6 * MIB, DEVICE, stream);
        free(block);
        long third = sibling.allocate(6 * MIB, DEVICE, stream);
        free(third);
    }

    @Test
    void theReasonOfASourceIsTold() {
        MemoryPool pool = builder().source(new BadSource()).open();
        DeviceOutOfMemoryException refused = refused(pool, MIB);
        assertTold(refused, "badsrc is empty");
        assertThat(refused).matches(full -> !full.isByLimit());
    }

    @Test
    void aFunctionThatReturnsNothingIsTold() {
        MemoryPool pool = builder().functions((_, _) -> 0, (_, _, _) -> {}).open();
        assertTold(refused(pool, MIB), "the pool's function returned 0 for " + 2 * MIB + " bytes (2.00 MiB)");
    }

    @Test
    void anUpstreamWithoutMemoryIsNamed() {
        MemoryPool base = builder().source(new BadSource()).tag("base").open();
        MemoryPool top = builder().upstream(base).tag("top").open();
        assertTold(
                refused(top, MIB),
                "no segment of " + 2 * MIB + " bytes (2.00 MiB) from " + base + ": badsrc is empty; ");
    }

    @Test
    void theCompactionOfAnotherAllocatorIsNotMentioned() {
        memory.setCurrent("caching");
        MemoryPool pool = builder().open();
        long block = pool.allocate(200 * MIB, DEVICE, stream);
        assertThat(refused(pool, 100 * MIB)).message().doesNotContain("compaction", "caching has no memory");
        free(block);
    }

    @Test
    void theReserveThatRefusesIsTold() {
        memory.limits().setReserve(DEVICE, 200 * MIB);
        MemoryPool pool = builder().open();
        assertThat(refused(pool, 100 * MIB)).hasMessageContaining("a reserve of " + 200 * MIB + " bytes");
    }

    @Test
    void theReasonIsToldForInitialBytes() {
        Allocator pool = builder()
                .spec("caching:initial_bytes=4MiB")
                .source(new BadSource())
                .open();
        assertTold(refused(pool, MIB), "badsrc is empty");
        DeviceOutOfMemoryException refused = catchThrowableOfType(
                DeviceOutOfMemoryException.class,
                () -> builder()
                        .upstream(builder().limitBytes(MIB).open())
                        .initialBytes(4 * MIB, DEVICE, stream)
                        .open());
        assertThat(refused)
                .hasMessageContaining("limit of " + MIB + " bytes")
                .matches(DeviceOutOfMemoryException::isByLimit)
                .matches(DeviceOutOfMemoryException::canNeverFit);
    }
}
