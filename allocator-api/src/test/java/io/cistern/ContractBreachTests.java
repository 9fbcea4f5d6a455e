package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.routing.AllocatorCalls;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Plug-ins that return what they must not, and sizes at the end of the address space.
final class ContractBreachTests {
    private static final long SMALL = 1024;
    private static final long LARGE = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final MemoryLimit limit = MemoryLimit.of("limit", Long.MAX_VALUE);
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(), List.of()))
            .limit(limit)
            .open();
    private final List<Long> freed = new ArrayList<>();
    private final Allocator allocator = memory.open(OpenOptions.made("plug-in", new Plugin()));
    private long address = 1L << 32;

    @RegisterExtension
    private final LogOf log = new LogOf(AllocatorCalls.class.getName());

    private boolean refusesFrees;

    @AfterEach
    void close() {
        memory.close();
        assertThat(allocator.isDrained()).isTrue();
        gpu.close();
    }

    private final class Plugin implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return address;
        }

        @Override
        public void free(long block, long byteSize, int device, long stream) {
            freed.add(byteSize);
            if (refusesFrees) {
                throw new IllegalStateException("no such block");
            }
        }
    }

    private AllocatorContractException refusal(long byteSize) {
        AllocatorContractException[] thrown = new AllocatorContractException[1];
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> allocator.allocate(byteSize, 0, 0))
                .satisfies(failure -> thrown[0] = failure);
        return thrown[0];
    }

    private void assertTakenOnce(long first, long second) {
        long block = allocator.allocate(first, 0, 0);
        assertThat(refusal(second)).hasMessageContaining("where a live block already begins");
        assertThat(memory.liveBlocks()).extracting(LiveBlock::byteSize).containsExactly(first);
        memory.free(block, 0);
        assertThat(freed).containsExactly(first);
        freed.clear();
    }

    /// Anywhere in what one part of the table holds, in either order, also where both sizes were there before.
    @ParameterizedTest
    @ValueSource(longs = {1L << 32, (1L << 32) + 256, (1L << 32) + (1 << 16), (1L << 33) - 256, (1L << 49) - 256})
    void anAddressIsTakenOnceWhateverTheSize(long twice) {
        address = twice;
        assertTakenOnce(SMALL, LARGE);
        assertTakenOnce(LARGE, SMALL);
        assertTakenOnce(SMALL, LARGE);
    }

    @Test
    void anAddressOfALargeBlockIsNoSmallOne() {
        assertTakenOnce(LARGE, SMALL);
    }

    @Test
    void anAddressThatWasFreedMayHaveAnotherSize() {
        for (long byteSize : new long[] {SMALL, LARGE, SMALL}) {
            memory.free(allocator.allocate(byteSize, 0, 0), 0);
        }
        assertThat(freed).containsExactly(SMALL, LARGE, SMALL);
    }

    @Test
    void anIllegalAddressIsGivenBackOnce() {
        address = 257;
        refusesFrees = true;
        assertThat(refusal(SMALL))
                .hasMessageContaining("not a multiple of 256")
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .contains("no such block"));
        assertThat(freed).containsExactly(SMALL);
    }

    @Test
    void anIllegalAddressIsGivenBackOnceOnAVirtualThread() throws InterruptedException {
        Thread.ofVirtual().start(this::anIllegalAddressIsGivenBackOnce).join();
        assertThat(freed).containsExactly(SMALL);
    }

    @Test
    void theLargestBlockIsCountedInFull() {
        long largest = (1L << 48) - 1;
        long block = allocator.allocate(largest, 0, 0);
        assertThat(limit.usedBytes()).isEqualTo(largest);
        memory.free(block, 0);
        assertThat(freed).containsExactly(largest);
        assertThat(limit.usedBytes()).isZero();
    }

    @Test
    void aBlockThatNoRecordHoldsIsRefused() {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> allocator.allocate(1L << 48, 0, 0))
                .withMessageContaining("more than a device can address");
        assertThat(limit.usedBytes()).isZero();
    }

    /// Each question counts it as unknown; the first one names the plug-in.
    @Test
    void negativeBytesCountAsUnknown() {
        Allocator negative = memory.open(OpenOptions.made("negative", new Negative()));
        assertThat(negative.reservedBytes(0)).isEmpty();
        assertThat(negative.statistics(0).reservedBytes()).isEmpty();
        assertThat(memory.statistics(0).reservedBytes()).isEmpty();
        TrimResult trimmed = negative.trim(0, 0, TrimMode.WITHOUT_WAITING);
        assertThat(trimmed.returnedBytes()).isZero();
        assertThat(trimmed.reservedBytes()).isEmpty();
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> negative.allocate(SMALL, 0, 0))
                .satisfies(refused ->
                        assertThat(refused.report().orElseThrow().text()).contains("negative: unknown reserved, "));
        assertThat(log.messages()).singleElement().asString().contains("negative", "-5", "reservedBytes");
        negative.close();
    }

    private static final class Negative implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            throw new DeviceOutOfMemoryException(byteSize, device, "");
        }

        @Override
        public void free(long block, long byteSize, int device, long stream) {}

        @Override
        public OptionalLong reservedBytes(int device) {
            return OptionalLong.of(-5);
        }

        @Override
        public long trim(int device, long keepBytes) {
            return -3;
        }
    }

    /// A block has one owner, so an allocator around an open one has to be opened as such.
    @Test
    void blocksOfAnOpenAllocatorAreRefusedWithTheWayToBuildOnIt() {
        Allocator upstream = memory.open(OpenOptions.made("upstream", new Plugin()));
        DeviceAllocator over = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return upstream.allocate(byteSize, device, stream);
            }

            @Override
            public void free(long block, long byteSize, int device, long stream) {
                memory.free(block, stream);
            }
        };
        Allocator built = memory.open(OpenOptions.made("built", over));
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> built.allocate(SMALL, 0, 0))
                .withMessageContainingAll("upstream", "OpenOptions.around");
        assertThat(memory.liveBlocks()).isEmpty();
        assertThat(freed).containsExactly(SMALL);
    }
}
