package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.testkit.DiscoveredCatalog;
import io.cistern.testkit.Patterns;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Shows what users get from a shared library that checks nothing, on a GPU. Run it by its name, with the path
/// of the compiled `tools/benchmarks/peers/careless_alloc.cu` in the property `cistern.testkit.library`.
@Tag("library")
public class CarelessLibrary {
    private static final String PROPERTY = "cistern.testkit.library";
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    private final String library = "library:path="
            + Objects.requireNonNull(System.getProperty(PROPERTY), "property " + PROPERTY + " names no library");
    private final CudaDriver driver = DriverUnderTest.open();
    private final DeviceMemory memory =
            DeviceMemory.builder(driver).catalog(DiscoveredCatalog.find()).open();
    private final Patterns patterns = new Patterns(driver, DEVICE);
    private long stream;

    /// For JUnit.
    public CarelessLibrary() {}

    @BeforeEach
    void makeStream() {
        stream = driver.streams().create(DEVICE);
    }

    @AfterEach
    void close() {
        memory.streamClosing(DEVICE, stream);
        driver.streams().destroy(DEVICE, stream);
        patterns.close();
        memory.close();
        assertThat(memory.allocators()).isEmpty();
        driver.close();
    }

    @Test
    void itsBlocksAreMemoryOfTheDeviceAndMetered() {
        Allocator allocator = memory.open(library);
        long block = allocator.allocate(3 * MIB, DEVICE, stream);
        patterns.write(block, 3 * MIB, 7, stream);
        patterns.verify(block, 3 * MIB, 7, stream);

        assertThat(patterns.mismatches()).isEmpty();
        assertThat(allocator.statistics(DEVICE).requestedBytes()).isEqualTo(3 * MIB);
        memory.free(block, stream);
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
    }

    @Test
    void aFailureThatItDoesNotNoticeIsOutOfMemory() {
        Allocator allocator = memory.open(library);
        long kept = allocator.allocate(MIB, DEVICE, stream);
        long tooMuch = memory.environment().totalBytes(DEVICE);

        assertThatThrownBy(() -> allocator.allocate(tooMuch, DEVICE, stream))
                .isInstanceOf(DeviceOutOfMemoryException.class);

        memory.free(kept, stream);
        memory.free(allocator.allocate(MIB, DEVICE, stream), stream);
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
    }

    @Test
    void aContextThatItLeavesBehindIsPutBack() {
        Allocator allocator = memory.open(library + ",malloc=switching_malloc");
        long before = driver.devices().enterContext(DEVICE);
        long own = driver.devices().primaryContext(DEVICE);
        long block = allocator.allocate(MIB, DEVICE, stream);

        assertThat(driver.devices().enterContext(DEVICE)).isEqualTo(own);
        memory.free(block, stream);
        driver.devices().leaveContext(DEVICE, before);
    }

    @Test
    void blocksThatOverlapAndMemoryOfTheHostAreRefused() {
        Allocator overlapping = memory.open(library + ",malloc=overlapping_malloc,free=overlapping_free");
        long first = overlapping.allocate(MIB, DEVICE, stream);
        assertThatThrownBy(() -> overlapping.allocate(MIB, DEVICE, stream))
                .isInstanceOf(AllocatorContractException.class)
                .hasMessageContaining("which overlaps one of its live blocks");
        memory.free(first, stream);

        Allocator host = memory.open(library + ",malloc=host_malloc,free=host_free");
        assertThatThrownBy(() -> host.allocate(MIB, DEVICE, stream)).isInstanceOf(AllocatorContractException.class);
    }

    @Test
    void aPoolCutsAndKeepsItsSegments() {
        try (MemoryPool pool = memory.pools().open("caching:source=\"" + library + '"')) {
            for (int i = 0; i < 100; i++) {
                long block = pool.allocate(4096, DEVICE, stream);
                patterns.write(block, 4096, i, stream);
                patterns.verify(block, 4096, i, stream);
                memory.free(block, stream);
            }
            assertThat(patterns.mismatches()).isEmpty();
            assertThat(pool.reservedBytes(DEVICE)).hasValue(2 * MIB);
        }
    }
}
