package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Trims right after a stream has freed memory. Memory that a trim keeps, or that the driver does not take back,
/// still belongs to that stream until it has passed its frees.
abstract class TrimContractTests extends ConformanceContractTests {
    private static final long[] SIZES = {512, 64 * KIB, 3 * MIB, 40 * MIB};
    private static final int EACH_SIZE = 3;
    private static final Set<DriverCall> INEXACT =
            EnumSet.of(DriverCall.MEM_ALLOC_MANAGED, DriverCall.MEM_ALLOC_ASYNC, DriverCall.MEM_ALLOC_FROM_POOL_ASYNC);

    /// How much the trim may keep.
    enum Keep {
        NOTHING,
        HALF,
        ALL
    }

    /// A trim, and what happens at that time.
    ///
    /// @param busy whether the stream that freed has yet to pass its frees
    /// @param refused whether the driver takes no memory back meanwhile
    record Trim(TrimMode mode, Keep keep, boolean busy, boolean refused) {}

    TrimContractTests(AllocatorConformance suite) {
        super(suite);
    }

    static List<Trim> trims() {
        List<Trim> all = new ArrayList<>();
        for (TrimMode mode : TrimMode.values()) {
            for (Keep keep : Keep.values()) {
                for (boolean busy : new boolean[] {true, false}) {
                    all.add(new Trim(mode, keep, busy, false));
                    all.add(new Trim(mode, keep, busy, true));
                }
            }
        }
        return all;
    }

    @ParameterizedTest
    @MethodSource("trims")
    void anotherStreamGetsNothingBeforeTheFreeHasPassed(Trim trim) {
        long other = stream();
        long third = stream();
        beside(trim, () -> {
            allocateAll(other);
            allocateAll(third);
            driver.streams().synchronize(DEVICE, other);
            driver.streams().synchronize(DEVICE, third);
        });
    }

    @ParameterizedTest
    @MethodSource("trims")
    void theStreamOfTheFreesGoesOn(Trim trim) {
        long other = stream();
        long freeing = beside(trim, () -> {});
        allocateAll(freeing);
        allocateAll(other);
        assertContents();
    }

    /// Frees blocks, some allocated by another stream, and trims; then runs work and checks all contents.
    ///
    /// @return the stream that freed
    private long beside(Trim trim, Runnable work) {
        long freeing = stream();
        long elsewhere = stream();
        StreamLatch latch = latch();
        List<Block> own = blocks(freeing);
        List<Block> handedOver = blocks(elsewhere);
        if (trim.busy()) {
            latch.hold(freeing);
        }
        whileHeld(latch, () -> {
            own.forEach(this::free);
            handedOver.forEach(block -> handOver(block, freeing));
            if (!trim.busy()) {
                driver.streams().synchronize(DEVICE, freeing);
            }
            run(trim, bytes(own) + bytes(handedOver));
            work.run();
        });
        assertContents();
        return freeing;
    }

    private List<Block> blocks(long stream) {
        List<Block> blocks = new ArrayList<>();
        for (long byteSize : SIZES) {
            for (int i = 0; i < EACH_SIZE; i++) {
                blocks.add(allocate(byteSize, stream));
            }
        }
        return blocks;
    }

    private void allocateAll(long stream) {
        blocks(stream).forEach(block -> verify(block, stream));
    }

    private static long bytes(List<Block> blocks) {
        return blocks.stream().mapToLong(Block::byteSize).sum();
    }

    private void run(Trim trim, long freedBytes) {
        if (trim.refused() && driver.original() instanceof SimulatedGpu gpu) {
            allowLostMemory();
            FaultContractTests.RETURNING.forEach(
                    call -> gpu.faults().failOn(call, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN));
            tryTrim(trim, freedBytes);
            gpu.faults().clear();
        } else {
            tryTrim(trim, freedBytes);
        }
    }

    private void tryTrim(Trim trim, long freedBytes) {
        long reserved = allocator.reservedBytes(DEVICE).orElse(freedBytes);
        long keep = switch (trim.keep()) {
            case NOTHING -> 0;
            case HALF -> reserved / 2;
            case ALL -> reserved;
        };
        long before = driver.memory().freeBytes(DEVICE);
        try {
            long returned = allocator.trim(DEVICE, keep, trim.mode()).returnedBytes();
            if (countsExactly()) {
                assertThat(returned)
                        .as("bytes that the trim says it gave back, and bytes that the driver got")
                        .isLessThanOrEqualTo(driver.memory().freeBytes(DEVICE) - before);
            }
        } catch (RuntimeException failed) {
            if (!trim.refused()) {
                throw failed;
            }
            assertThat(FaultContractTests.ofDriver(failed).result()).isEqualTo(CudaResult.UNKNOWN);
        }
    }

    /// Returns whether memory that a trim gives back is free on the device at once. Managed memory need not be on
    /// the device, the driver's pools may keep memory, and on a real device others take memory meanwhile.
    private boolean countsExactly() {
        return driver.original() instanceof SimulatedGpu gpu
                && INEXACT.stream().allMatch(call -> gpu.calls().of(call) == 0);
    }
}
