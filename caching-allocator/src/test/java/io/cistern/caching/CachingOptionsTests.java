package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.OpenOptions;
import io.cistern.caching.options.CachingOption;
import io.cistern.caching.options.CachingSpec;
import io.cistern.caching.options.CheckLevel;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Logger;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Options as people write them, on a simulated GPU of 1 GiB.
class CachingOptionsTests extends PoolFixture {
    private static final long GIB = 1L << 30;

    CachingOptionsTests() {
        super(GIB);
    }

    @Test
    void aPyTorchStringIsTaken() {
        try (Allocator caching = memory.open("caching:pytorch=\"backend:native,expandable_segments:False,"
                + "max_split_size_mb:512,roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]\"")) {
            assertThat(reservedFor(caching, 3 * MIB)).isEqualTo(20 * MIB);
            assertThat(reservedFor(caching, 84 * MIB)).isEqualTo(84 * MIB);
        }
    }

    @Test
    void keysOfPyTorchsThatMeanNothingHereAreWarnedOfOnce() {
        String spec = "caching:pytorch=\"release_lock_on_cudamalloc:True,pinned_num_register_threads:8,"
                + "graph_capture_record_stream_reuse:False,max_split_size_mb:128\"";
        List<String> told = new ArrayList<>();
        Logger logger = Logger.getLogger(OptionReader.class.getName());
        logger.setUseParentHandlers(false);
        logger.setFilter(line -> told.add(line.getMessage()));
        for (int i = 0; i < 2; i++) {
            try (Allocator caching = memory.open(spec)) {
                assertThat(reservedFor(caching, 84 * MIB)).isEqualTo(84 * MIB);
            }
        }
        logger.setFilter(null);
        logger.setUseParentHandlers(true);

        assertThat(told)
                .containsExactly("caching: keys of the PyTorch string without effect here: release_lock_on_cudamalloc"
                        + " (no lock of the whole allocator is held across a driver call), pinned_num_register_threads"
                        + " (it concerns host memory), graph_capture_record_stream_reuse (memory in a capture is reused"
                        + " as the graph orders it), max_split_size_mb (blocks are split freely, since their pages go"
                        + " back one by one)");
    }

    /// Programs paste whole strings. Most of these keys answer a problem that pages do not have.
    @ParameterizedTest
    @ValueSource(
            strings = {
                "roundup_bypass_threshold_mb:1024",
                "roundup_power2_divisions:4",
                "max_split_size_mb:128",
                "max_non_split_rounding_mb:16",
                "large_segment_size_mb:32",
                "garbage_collection_threshold:0.8",
                "throw_on_cudamalloc_oom:True",
                "release_lock_on_hipmalloc:True"
            })
    void whatPyTorchAcceptsIsAWarning(String pasted) {
        List<String> told = new ArrayList<>();
        Logger logger = Logger.getLogger(OptionReader.class.getName());
        logger.setUseParentHandlers(false);
        logger.setFilter(line -> told.add(line.getMessage()));
        try (Allocator caching = memory.open("caching:pytorch=\"" + pasted + "\"")) {
            assertThat(reservedFor(caching, 84 * MIB)).isPositive();
        }
        logger.setFilter(null);
        logger.setUseParentHandlers(true);

        assertThat(told).singleElement().asString().contains("without effect", pasted.split(":")[0]);
    }

    @Test
    void aSpecWrittenInCodeIsThatOfTheText() {
        AllocatorSpec spec = new CachingSpec()
                .with(CachingOption.MAX_BYTES, 128L << 20)
                .with(CachingOption.EXPANDABLE_SEGMENTS, false)
                .with(CachingOption.CHECK, CheckLevel.CHECKED)
                .spec();
        assertThat(spec.options())
                .isEqualTo(AllocatorSpec.parse("caching:max_bytes=134217728,expandable_segments=false,check=checked")
                        .options());
        memory.open(OpenOptions.spec(spec)).close();
    }

    @Test
    void theOptionsOfOneAllocatorDoNotTouchAnother() {
        try (Allocator rounds = memory.open("caching:page_size=32MiB");
                Allocator exact = memory.open("caching")) {
            assertThat(reservedFor(rounds, 88 * MIB)).isEqualTo(96 * MIB);
            assertThat(reservedFor(exact, 88 * MIB)).isEqualTo(88 * MIB);
        }
    }

    @Test
    void plainSegmentsOrPages() {
        try (Allocator pages = memory.open("caching:expandable_segments=true");
                Allocator segments = memory.open("caching:expandable_segments=false")) {
            assertThat(reservedFor(pages, 3 * MIB)).isEqualTo(4 * MIB);
            assertThat(reservedFor(segments, 3 * MIB)).isEqualTo(20 * MIB);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void noMoreIsReservedThanTheFraction(String expandable) {
        try (Allocator caching =
                memory.open("caching:per_process_memory_fraction=0.5,expandable_segments=" + expandable)) {
            long half = caching.allocate(GIB / 2, DEVICE, stream);
            assertThatThrownBy(() -> caching.allocate(MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            free(half);
            assertThat(caching.allocate(3 * MIB, DEVICE, stream))
                    .as("idle memory gives way")
                    .isNotZero();
            assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isLessThanOrEqualTo(GIB / 2);
            memory.liveBlocks().forEach(block -> free(block.address()));
        }
    }

    @Test
    void aRequestAboveTheMaximumIsRefusedWithoutAnyStep() {
        try (Allocator caching = memory.open("caching:max_bytes=512MiB")) {
            long idle = caching.allocate(MIB, DEVICE, stream);
            free(idle);
            long reserved = caching.reservedBytes(DEVICE).orElseThrow();
            assertThatThrownBy(() -> caching.allocate(9 * GIB, DEVICE, stream))
                    .hasMessageContaining("that max_bytes allows: raise it")
                    .asInstanceOf(InstanceOfAssertFactories.type(DeviceOutOfMemoryException.class))
                    .matches(DeviceOutOfMemoryException::canNeverFit)
                    .satisfies(refused -> assertThat(refused.steps()).isEmpty())
                    .satisfies(
                            refused -> assertThat(refused.report().orElseThrow().unusable())
                                    .isEmpty());
            assertThat(caching.reservedBytes(DEVICE)).hasValue(reserved);
            assertThat(caching.memoryStatistics(DEVICE)).containsEntry("num_ooms", 1L);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void noMoreIsReservedThanTheMaximum(String expandable) {
        try (Allocator caching = memory.open("caching:max_bytes=512MiB,expandable_segments=" + expandable)) {
            long half = caching.allocate(GIB / 2, DEVICE, stream);
            assertThatThrownBy(() -> caching.allocate(MIB, DEVICE, stream))
                    .hasMessageContaining("that max_bytes allows: raise it")
                    .asInstanceOf(InstanceOfAssertFactories.type(DeviceOutOfMemoryException.class))
                    .satisfies(
                            refused -> assertThat(refused.report().orElseThrow().advice())
                                    .singleElement()
                                    .asString()
                                    .contains("the device has enough free memory", "that max_bytes allows: raise it"))
                    .satisfies(refused ->
                            assertThat(refused.report().orElseThrow().text()).contains("\ntried without success: "));
            free(half);
            free(caching.allocate(3 * MIB, DEVICE, stream));
            assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isLessThanOrEqualTo(GIB / 2);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void theInitialMemoryServesLaterRequestsWithoutGrowth(String expandable) {
        try (Allocator caching = memory.open("caching:initial_bytes=32MiB,expandable_segments=" + expandable)) {
            assertThat(caching.reservedBytes(DEVICE)).hasValue(0);
            long first = caching.allocate(MIB, DEVICE, stream);
            assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isGreaterThanOrEqualTo(32 * MIB);
            long reserved = caching.reservedBytes(DEVICE).orElseThrow();
            long second = caching.allocate(24 * MIB, DEVICE, stream);
            assertThat(caching.reservedBytes(DEVICE)).hasValue(reserved);
            free(first, second);
        }
    }

    @Test
    void initialMemoryThatIsNotThereFailsTheRequestAndIsTriedAgain() {
        try (Allocator caching = memory.open("caching:initial_bytes=900MiB")) {
            long others = memory.allocate(200 * MIB, DEVICE, stream);
            for (int i = 0; i < 2; i++) {
                assertThatThrownBy(() -> caching.allocate(MIB, DEVICE, stream))
                        .isInstanceOf(DeviceOutOfMemoryException.class)
                        .hasMessageContaining("initial_bytes=" + 900 * MIB + " is obtained with the first request")
                        .hasMessageContaining("the device has " + 824 * MIB + " bytes (824 MiB) free of ");
                assertThat(caching.reservedBytes(DEVICE)).hasValue(0);
            }
            free(others);
            free(caching.allocate(MIB, DEVICE, stream));
            assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isGreaterThanOrEqualTo(900 * MIB);
        }
    }

    @Test
    void aFractionOfLessThanAPageIsRefusedAtOnce() {
        assertThatThrownBy(() -> memory.open("caching:per_process_memory_fraction=0.001"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("per_process_memory_fraction allows 1073741 of the " + GIB)
                .hasMessageContaining("at least 2097152 bytes are needed, one page");
    }

    @Test
    void reachingTheFractionMayBeAnErrorAtOnce() {
        String atOnce = "caching:per_process_memory_fraction=0.5,throw_on_cudamalloc_oom=true,reuse=never";
        try (Allocator caching = memory.open(atOnce)) {
            long other = gpu.streams().create(DEVICE);
            memory.free(caching.allocate(400 * MIB, DEVICE, other), other);
            long reserved = caching.reservedBytes(DEVICE).orElseThrow();
            assertThatThrownBy(() -> caching.allocate(200 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class)
                    .hasMessageContaining("per_process_memory_fraction");
            assertThat(caching.reservedBytes(DEVICE))
                    .as("nothing was given back")
                    .hasValue(reserved);
        }
    }

    /// Full in pieces, it refuses; empty, it serves one block of all that is allowed.
    @ParameterizedTest
    @ValueSource(strings = {"true", "false"})
    void whatWasFreedInPiecesServesOneLargeBlockUnderTheFraction(String expandable) {
        try (Allocator caching =
                memory.open("caching:per_process_memory_fraction=0.1171875,expandable_segments=" + expandable)) {
            long[] pieces = new long[3];
            for (int i = 0; i < pieces.length; i++) {
                pieces[i] = caching.allocate(40 * MIB, DEVICE, stream);
            }
            assertThatThrownBy(() -> caching.allocate(40 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            free(pieces);
            free(caching.allocate(120 * MIB, DEVICE, stream));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", ":expandable_segments=false"})
    void anAllocationThatFailedSucceedsOnceMemoryWasFreed(String options) {
        try (Allocator caching = memory.open("caching" + options)) {
            long first = caching.allocate(600 * MIB, DEVICE, stream);
            assertThatThrownBy(() -> caching.allocate(600 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            free(first);
            free(caching.allocate(610 * MIB, DEVICE, stream));
        }
    }

    private long reservedFor(Allocator caching, long byteSize) {
        long before = caching.reservedBytes(DEVICE).orElseThrow();
        long address = caching.allocate(byteSize, DEVICE, stream);
        long reserved = caching.reservedBytes(DEVICE).orElseThrow() - before;
        free(address);
        caching.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        return reserved;
    }
}
