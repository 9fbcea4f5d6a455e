package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class AdaptorAroundOpenAllocatorTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();
    private final ArrayAllocatorProvider array = new ArrayAllocatorProvider("array");
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(array), List.of(new DriverSource.Linear())))
            .open();
    private final MemoryLimit limit = MemoryLimit.of("upstream", 1000);
    private final Allocator upstream = memory.open(OpenOptions.spec("array").limit(limit));
    private final List<String> log = new ArrayList<>();

    @AfterEach
    void everythingIsFreeAgain() {
        memory.close();
        assertThat(limit.usedBytes()).isZero();
        assertThat(upstream.isDrained()).isTrue();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private Allocator open() {
        return memory.open(OpenOptions.around("logged", upstream, Logging::new));
    }

    @Test
    void itsBlocksComeFromTheUpstreamAndAreCountedAsItsOwn() {
        Allocator logged = open();
        long block = logged.allocate(300, 0, 0);
        assertThat(log).containsExactly("allocate 300");
        assertThat(memory.ownerOf(block)).isSameAs(logged);
        assertThat(logged.statistics(0).requestedBytes()).isEqualTo(300);
        assertThat(logged.reservedBytes(0)).hasValue(0);
        assertThat(upstream.statistics(0).requestedBytes()).isZero();
        memory.free(block, 0);
        assertThat(log).containsExactly("allocate 300", "free 300");
    }

    @Test
    void theUpstreamServesItsOwnUsersAsBefore() {
        Allocator logged = open();
        long own = upstream.allocate(100, 0, 0);
        long through = logged.allocate(200, 0, 0);
        assertThat(memory.ownerOf(own)).isSameAs(upstream);
        assertThat(log).containsExactly("allocate 200");
        memory.free(own, 0);
        memory.free(through, 0);
    }

    @Test
    void theUpstreamsLimitHoldsUnlessThereIsAnother() {
        Allocator logged = open();
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> logged.allocate(1001, 0, 0));
        MemoryLimit own = MemoryLimit.of("own", 2000);
        Allocator other =
                memory.open(OpenOptions.around("other", upstream, Logging::new).limit(own));
        long block = other.allocate(1500, 0, 0);
        assertThat(own.usedBytes()).isEqualTo(1500);
        memory.free(block, 0);
    }

    @Test
    void theUpstreamsMemoryGoesBackOnceBothAreClosed() {
        Allocator logged = open();
        long block = logged.allocate(100, 0, 0);
        upstream.close();
        assertThat(array.log).doesNotContain("array closed");
        logged.close();
        assertThat(array.log).doesNotContain("array closed");
        memory.free(block, 0);
        assertThat(array.log).endsWith("array closed");
        assertThat(logged.isDrained()).isTrue();
    }

    @Test
    void theEndOfAStreamIsAnnouncedToTheUpstreamOnce() {
        open();
        memory.streamClosing(0, 77);
        assertThat(array.log).containsOnlyOnce("array told of stream 77 on device 0");
    }

    @Test
    void whatItCanNotTrimTheUpstreamTrims() {
        Allocator logged = open();
        assertThat(logged.trim(0, 0, TrimMode.WITHOUT_WAITING).reservedBytes()).hasValue(0);
    }

    @Test
    void aClosedUpstreamOrOneOfOtherMemoryIsRefused() {
        try (DeviceMemory other = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(List.of(array), List.of(new DriverSource.Linear())))
                .open()) {
            OpenOptions foreign = OpenOptions.around("logged", other.open("array"), Logging::new);
            assertThatIllegalArgumentException().isThrownBy(() -> memory.open(foreign));
        }
        upstream.close();
        assertThatIllegalArgumentException().isThrownBy(this::open);
    }

    @Test
    void anAdaptorThatCanNotBeMadeLeavesTheUpstreamAsItWas() {
        OpenOptions broken = OpenOptions.around("broken", upstream, _ -> {
            throw new IllegalStateException("no log");
        });
        assertThatIllegalStateException().isThrownBy(() -> memory.open(broken)).withMessage("no log");
        upstream.close();
        assertThat(upstream.isDrained()).isTrue();
    }

    private final class Logging extends AllocatorAdaptor {
        Logging(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            log.add("allocate " + byteSize);
            return upstream().allocate(byteSize, device, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            log.add("free " + byteSize);
            upstream().free(address, byteSize, device, stream);
        }
    }
}
