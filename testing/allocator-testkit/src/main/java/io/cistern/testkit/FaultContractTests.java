package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.CudaStream;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Driver calls that fail on demand, on the simulated GPU only. Whichever call fails, live blocks keep their
/// contents and frees do not throw; once the driver works again, the allocator does too. A failed attempt to
/// obtain memory loses nothing.
abstract class FaultContractTests extends ConformanceContractTests {
    /// Calls that return memory. If the driver refuses to take memory back, it may stay lost.
    static final Set<DriverCall> RETURNING = EnumSet.of(
            DriverCall.MEM_FREE,
            DriverCall.MEM_FREE_ASYNC,
            DriverCall.MEM_FREE_HOST,
            DriverCall.MEM_POOL_DESTROY,
            DriverCall.MEM_POOL_TRIM_TO,
            DriverCall.MEM_UNMAP,
            DriverCall.MEM_RELEASE,
            DriverCall.MEM_ADDRESS_FREE);

    /// Calls whose "out of memory" means that the device is full.
    static final Set<DriverCall> OBTAINING = EnumSet.of(
            DriverCall.MEM_ALLOC,
            DriverCall.MEM_ALLOC_ASYNC,
            DriverCall.MEM_ALLOC_FROM_POOL_ASYNC,
            DriverCall.MEM_CREATE);

    private static final int ALWAYS = Integer.MAX_VALUE;
    private static final long[] SIZES = {100, 3 * KIB, 700 * KIB, 5 * MIB, 33 * MIB};

    private SimulatedGpu gpu;
    private long[] streams;

    FaultContractTests(AllocatorConformance suite) {
        super(suite);
    }

    @BeforeEach
    void needsASimulatedGpu() {
        assumeTrue(driver.original() instanceof SimulatedGpu, "a real driver does not fail on demand");
        gpu = (SimulatedGpu) driver.original();
        streams = streams(2);
    }

    static List<DriverCall> memoryCalls() {
        return Stream.of(DriverCall.values())
                .filter(call -> call.kind() == DriverCall.Kind.MEMORY)
                .toList();
    }

    @ParameterizedTest
    @MethodSource("memoryCalls")
    void oneFailureIsSurvivedWhereverItHappens(DriverCall call) {
        for (int after = 0; after < 5 && survive(call, after, 1, CudaResult.OUT_OF_MEMORY); after++) {
            survive(call, after, 1, CudaResult.UNKNOWN);
        }
    }

    @ParameterizedTest
    @MethodSource("memoryCalls")
    void aCallThatAlwaysFailsIsSurvived(DriverCall call) {
        for (int after = 0; after < 3 && survive(call, after, ALWAYS, CudaResult.OUT_OF_MEMORY); after += 2) {
            survive(call, after, ALWAYS, CudaResult.UNKNOWN);
        }
    }

    @Test
    void aFreeOnAnotherStreamDoesNotThrow() {
        freeWhileCallsFail(false);
    }

    @Test
    void aFreeOnAnEndedStreamDoesNotThrow() {
        freeWhileCallsFail(true);
    }

    private void freeWhileCallsFail(boolean isEnded) {
        allowLostMemory();
        for (DriverCall call : DriverCall.values()) {
            if (call.kind() != DriverCall.Kind.OTHER) {
                List<Block> blocks = LongStream.of(SIZES)
                        .mapToObj(byteSize -> allocate(byteSize, streams[0]))
                        .toList();
                blocks.forEach(block -> verify(block, streams[0]));
                long freeing = isEnded ? stream() : streams[1];
                order(streams[0], freeing);
                if (isEnded) {
                    closeStream(freeing);
                }
                gpu.faults().failOn(call, 0, ALWAYS, CudaResult.UNKNOWN);
                blocks.forEach(block -> {
                    if (isEnded) {
                        freeOnEnded(block, freeing);
                    } else {
                        freeUnverified(block, freeing);
                    }
                });
                gpu.faults().clear();
                for (long byteSize : SIZES) {
                    free(allocate(byteSize, streams[1]));
                }
            }
        }
        assertContents();
    }

    /// When the driver refuses to take memory back.
    enum Moment {
        FREE,
        TRIM,
        CLOSE
    }

    static List<Arguments> refusals() {
        return RETURNING.stream()
                .flatMap(call -> Stream.of(Moment.values()).map(moment -> Arguments.of(call, moment)))
                .toList();
    }

    @ParameterizedTest
    @MethodSource("refusals")
    void whatTheDriverRefusesOnceIsGivenBackLater(DriverCall call, Moment moment) {
        if (call == DriverCall.MEM_ADDRESS_FREE) {
            allowLostMemory(); // addresses without memory may stay reserved
        }
        boolean refuses = true;
        for (int after = 0; after < 4 && refuses; after++) {
            List<Block> blocks = blocks();
            assertContents();
            refuses = refusedOnce(moment == Moment.FREE, call, after, () -> blocks.forEach(this::free));
            assertContents();
            if (moment == Moment.TRIM) {
                refuses = refusedOnce(true, call, after, () -> trimAll(TrimMode.WITHOUT_WAITING));
            }
            refuses |= refusedOnce(moment == Moment.CLOSE, call, after, this::closeAllocators);
            closeAllocators();
            assertNothingLost(
                    ("forgets memory that the driver refuses to take back once, in %s (%s): it must keep it, and"
                                    + " try again in trim and, a few times, in close")
                            .formatted(moment.name().toLowerCase(Locale.ROOT), call));
            reopenAllocator();
        }
    }

    private List<Block> blocks() {
        return LongStream.of(SIZES)
                .mapToObj(byteSize -> allocate(byteSize, streams[0]))
                .toList();
    }

    /// Runs work, and makes one call in it fail if that is wanted. Returns whether it failed.
    private boolean refusedOnce(boolean wanted, DriverCall call, int after, Runnable work) {
        if (!wanted) {
            work.run();
            return false;
        }
        gpu.faults().failOn(call, after, 1, CudaResult.UNKNOWN);
        orOfDriver(work);
        boolean refused = gpu.faults().failedCalls() > 0;
        gpu.faults().clear();
        return refused;
    }

    @ParameterizedTest
    @MethodSource("memoryCalls")
    void anAnnouncedWaitDoesNotThrow(DriverCall call) {
        Block block = allocate(MIB, streams[0]);
        free(allocate(MIB, streams[0]));
        try (CudaStream waiting = CudaStream.ofForeign(memory, DEVICE, streams[1])) {
            gpu.faults().failOn(call, 0, ALWAYS, CudaResult.UNKNOWN);
            waiting.await(CudaStream.ofForeign(memory, DEVICE, streams[0]));
        } catch (RuntimeException thrown) {
            throw new AssertionError(
                    allocator.name() + " threw in streamWaits, which must not throw: " + thrown, thrown);
        } finally {
            gpu.faults().clear();
        }
        free(block, streams[1]);
        assertContents();
    }

    /// Returns whether the call failed at all; if not, the allocator makes fewer calls, and no later one can fail.
    private boolean survive(DriverCall call, int after, int times, CudaResult result) {
        if (RETURNING.contains(call)) {
            allowLostMemory();
        }
        gpu.faults().failOn(call, after, times, result);
        List<Block> blocks = tryEverything(call, result);
        boolean failed = gpu.faults().failedCalls() > 0;
        gpu.faults().clear();
        blocks.forEach(this::free);
        for (long byteSize : SIZES) {
            free(allocate(byteSize, streams[0]));
        }
        assertContents();
        allocator.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        return failed;
    }

    /// Allocates, frees and trims while the driver fails; returns the blocks that are still live.
    private List<Block> tryEverything(DriverCall call, CudaResult result) {
        List<Block> blocks = new ArrayList<>();
        for (int round = 0; round < 3; round++) {
            for (long byteSize : SIZES) {
                tryAllocate(byteSize, streams[round % 2], call, result, blocks);
            }
            for (int i = blocks.size() - 1; i >= 0; i -= 2) {
                handOver(blocks.remove(i), streams[(round + 1) % 2]);
            }
            synchronize();
            tryTrim();
        }
        return blocks;
    }

    private void tryAllocate(long byteSize, long stream, DriverCall call, CudaResult result, List<Block> blocks) {
        try {
            blocks.add(allocate(byteSize, stream));
        } catch (DeviceOutOfMemoryException refused) {
            assertThat(refused.byteSize()).isEqualTo(byteSize);
        } catch (RuntimeException thrown) {
            CudaException failed = ofDriver(thrown);
            assertThat(failed.call()).as("the call that failed").isEqualTo(call);
            assertThat(result == CudaResult.OUT_OF_MEMORY && OBTAINING.contains(call))
                    .as("out of memory must be a DeviceOutOfMemoryException, not " + failed)
                    .isFalse();
        }
    }

    /// Returns the driver's error, which another library may have wrapped.
    static CudaException ofDriver(RuntimeException thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof CudaException ofDriver) {
                return ofDriver;
            }
        }
        throw thrown;
    }

    private void tryTrim() {
        orOfDriver(() -> allocator.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING));
    }

    /// Runs work that may throw the driver's error.
    private static void orOfDriver(Runnable work) {
        try {
            work.run();
        } catch (RuntimeException allowed) {
            assertThat(ofDriver(allowed).result()).isIn(CudaResult.OUT_OF_MEMORY, CudaResult.UNKNOWN);
        }
    }
}
