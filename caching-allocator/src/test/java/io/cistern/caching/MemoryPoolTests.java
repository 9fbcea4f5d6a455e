package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;

/// How pools are made, and how they end.
class MemoryPoolTests extends PoolFixture {
    private final Functions functions = new Functions();

    MemoryPoolTests() {
        super(512 * MIB);
    }

    @Test
    void idsIncreaseAndAreDistinctWithFourThreads() throws InterruptedException {
        long first = memory.pools().open("caching").id();
        assertThat(memory.pools().open("caching").id()).isGreaterThan(first);
        Set<Long> ids = ConcurrentHashMap.newKeySet();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            threads.add(Thread.ofPlatform()
                    .start(() -> ids.add(memory.pools().open("caching").id())));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(ids).hasSize(4).allMatch(id -> id > first + 1);
    }

    /// The numbers are those of PyTorch, whose small segments also have 2 MiB.
    @Test
    void aPoolOfTwoFunctionsReturnsThroughTheDeleter() {
        MemoryPool pool = functions.pool();
        assertThat(pool.useCount()).isOne();
        List<Long> blocks = new ArrayList<>();
        try (Scope _ = pool.enter()) {
            assertThat(pool.useCount()).isEqualTo(2);
            blocks.add(allocate(MIB));
            assertThat(functions.made).hasSize(1);
            blocks.add(allocate(MIB));
            assertThat(functions.made).hasSize(1);
            blocks.add(allocate(MIB));
            assertThat(functions.made).hasSize(2);
        }
        assertThat(pool.useCount()).isOne();
        assertThat(pool.reservedBytes(DEVICE)).hasValue(4 * MIB);
        blocks.forEach(this::free);
        assertThat(functions.deleted).as("kept for later").isEmpty();
        pool.close();
        assertThat(functions.deleted).containsExactlyInAnyOrderElementsOf(functions.made);
        assertThat(pool.isDrained()).isTrue();
    }

    @Test
    void closingAPoolWithLiveBlocksKeepsThemValid() {
        MemoryPool pool = functions.pool();
        long block = pool.allocate(MIB, DEVICE, stream);
        pool.close();
        assertThat(pool.liveBlockCount()).isOne();
        assertThat(pool.statistics(DEVICE).requestedBytes()).isEqualTo(MIB);
        assertThat(functions.deleted).isEmpty();
        gpu.copies().fillBytes(DEVICE, block, (byte) 1, MIB, stream);
        gpu.streams().synchronize(DEVICE, stream);
        assertThat(gpu.misuses()).isEmpty();
        free(block);
        assertThat(functions.deleted).as("returns by itself").isEqualTo(functions.made);
        assertThat(pool.isDrained()).isTrue();
        assertThat(memory.pools().all()).isEmpty();
    }

    @Test
    void closingAPoolReturnsItsIdleMemoryAtOnceAndNobodyElses() {
        MemoryPool closed = functions.pool();
        Functions others = new Functions();
        MemoryPool other = others.pool();
        free(other.allocate(MIB, DEVICE, stream));
        long idle = closed.allocate(20 * MIB, DEVICE, stream);
        long live = closed.allocate(MIB, DEVICE, stream);
        free(idle);
        closed.close();
        assertThat(functions.deleted).containsExactly(idle);
        assertThat(others.deleted).isEmpty();
        free(live);
        assertThat(functions.deleted).containsExactlyInAnyOrderElementsOf(functions.made);
    }

    @Test
    void aClosedPoolRefusesAllocationsAndScopes() {
        MemoryPool pool = memory.pools().open("caching");
        pool.close();
        pool.close();
        assertThat(pool.useCount()).isZero();
        assertThatIllegalStateException().isThrownBy(() -> pool.allocate(1, DEVICE, stream));
        assertThatIllegalStateException().isThrownBy(() -> pool.enter()).withMessageContaining("is closed");
    }

    @Test
    void trimmingOnePoolLeavesTheOthersTheirs() {
        Functions others = new Functions();
        MemoryPool other = others.pool();
        MemoryPool pool = functions.pool();
        free(other.allocate(MIB, DEVICE, stream), pool.allocate(MIB, DEVICE, stream));
        assertThat(pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                .isEqualTo(2 * MIB);
        assertThat(functions.deleted).hasSize(1);
        assertThat(other.reservedBytes(DEVICE)).hasValue(2 * MIB);
        assertThat(others.deleted).isEmpty();
    }

    @Test
    void aTrimOfAllOthersLeavesThePoolsTheirs() {
        MemoryPool pool = functions.pool();
        free(allocate(4 * MIB), pool.allocate(MIB, DEVICE, stream));
        long usual = memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow();
        assertThat(usual).isPositive();
        TrimResult result = memory.pools().trimAllOthers(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        assertThat(result.returnedBytes()).isEqualTo(usual);
        assertThat(result.reservedBytes()).hasValue(0);
        assertThat(pool.reservedBytes(DEVICE)).hasValue(2 * MIB);
        assertThat(memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                .isEqualTo(2 * MIB);
    }

    /// PyTorch rounds both segments up to 20 MiB; here an uncut block has what it needs, in whole 2 MiB.
    @Test
    void noSplitGivesOneBlockASegment() {
        Functions uncut = new Functions();
        MemoryPool whole = builder().functions(uncut, uncut).splits(false).open();
        MemoryPool split = functions.pool();
        long first = whole.allocate(4 * MIB, DEVICE, stream);
        long second = whole.allocate(4 * MIB, DEVICE, stream);
        free(split.allocate(4 * MIB, DEVICE, stream), split.allocate(4 * MIB, DEVICE, stream));
        assertThat(functions.made).hasSize(1);
        assertThat(uncut.made).containsExactly(first, second);
        free(first);
        long smaller = whole.allocate(4 * MIB - 512, DEVICE, stream);
        assertThat(smaller).as("the whole segment again").isEqualTo(first);
        assertThat(whole.reservedBytes(DEVICE)).hasValue(8 * MIB);
        free(second, smaller);
        whole.close();
        assertThat(uncut.deleted).containsExactlyInAnyOrder(first, second);
    }

    @Test
    void noSplitOverPagesGivesEachBlockAHandleOfItsOwn() {
        MemoryPool pool = builder().spec("pages").splits(false).open();
        long first = pool.allocate(4 * MIB, DEVICE, stream);
        long second = pool.allocate(4 * MIB, DEVICE, stream);
        assertThat(handleAt(first)).isNotEqualTo(handleAt(second)).isEqualTo(handleAt(first + 2 * MIB));
        free(first, second);
    }

    private long handleAt(long address) {
        long handle = gpu.virtualMemory().retainHandle(DEVICE, address);
        gpu.virtualMemory().release(DEVICE, handle);
        return handle;
    }

    @Test
    void aSourceOfHandlesGrowsByPages() {
        MemoryPool pool = memory.pools().open("pages");
        assertThat(pool.spec()).hasToString("caching:source=pages");
        long first = pool.allocate(3 * MIB, DEVICE, stream);
        long second = pool.allocate(3 * MIB, DEVICE, stream);
        assertThat(second).as("in one range").isEqualTo(first + 3 * MIB);
        assertThat(pool.reservedBytes(DEVICE)).hasValue(6 * MIB);
        free(first, second);
    }

    @Test
    void theNameOfAnAllocatorMeansAnInstanceOfItsOwn() {
        MemoryPool pool = memory.pools().open("direct");
        long before = gpu.calls().of(DriverCall.MEM_ALLOC);
        free(pool.allocate(MIB, DEVICE, stream));
        assertThat(gpu.calls().of(DriverCall.MEM_ALLOC)).isEqualTo(before + 1);
        assertThat(memory.current(0).statistics(DEVICE).allocations()).isZero();
    }

    @Test
    void anOptionThatTheAllocatorLacksIsAnError() {
        assertThatThrownBy(() -> builder().spec("direct").splits(false).open())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("splits");
        assertThatThrownBy(() -> builder().spec("direct").lendsToOthers(true).open())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("can't lend");
        assertThatThrownBy(() -> builder().byteAlignment(768).open())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("power of two");
        assertThat(memory.pools().all()).isEmpty();
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void splittingKeepsTheAlignment() {
        for (MemoryPool pool : List.of(
                builder().spec("linear").byteAlignment(64 << 10).open(),
                builder().spec("pages").byteAlignment(64 << 10).open())) {
            long[] blocks = new long[20];
            for (int i = 0; i < blocks.length; i++) {
                blocks[i] = pool.allocate(1 + i * 10_007L, DEVICE, stream);
                assertThat(blocks[i] % (64 << 10)).isZero();
            }
            free(blocks);
            pool.close();
        }
    }

    @Test
    void aSourceThatAlignsToLessIsAskedForMore() {
        List<Long> asked = new ArrayList<>();
        MemoryPool pool = builder()
                .functions(
                        (byteSize, device) -> {
                            asked.add(byteSize);
                            return gpu.memory().allocate(device, byteSize + 256) + 256;
                        },
                        (address, _, device) -> gpu.memory().free(device, address - 256))
                .byteAlignment(4096)
                .open();
        long block = pool.allocate(100, DEVICE, stream);
        assertThat(block % 4096).isZero();
        assertThat(asked).containsExactly(2 * MIB, 2 * MIB + 4096);
        free(block);
    }

    @Test
    void initialMemoryIsThereBeforeTheFirstAllocation() {
        MemoryPool pool = builder()
                .functions(functions, functions)
                .initialBytes(20 * MIB, DEVICE, stream)
                .open();
        assertThat(functions.made).hasSize(1);
        assertThat(pool.statistics(DEVICE).allocations()).isZero();
        free(pool.allocate(20 * MIB, DEVICE, stream));
        assertThat(functions.made).hasSize(1);
    }

    @Test
    void initialMemoryComesFromWhatOthersHaveIdle() {
        free(memory.allocate(400 * MIB, DEVICE, stream));
        MemoryPool pool = builder().initialBytes(300 * MIB, DEVICE, stream).open();
        assertThat(pool.reservedBytes(DEVICE)).hasValue(300 * MIB);
        assertThat(pool.statistics(DEVICE).allocations()).isZero();
        free(pool.allocate(300 * MIB, DEVICE, stream));
    }

    @Test
    void initialMemoryServesSmallBlocksToo() {
        MemoryPool pool = builder().initialBytes(4 * MIB, DEVICE, stream).open();
        long rest = gpu.memory().allocate(DEVICE, gpu.memory().freeBytes(DEVICE));
        for (long byteSize : new long[] {1, 4096, 64 << 10, (64 << 10) + 1, MIB}) {
            free(pool.allocate(byteSize, DEVICE, stream));
        }
        assertThat(pool.reservedBytes(DEVICE)).hasValue(4 * MIB);
        gpu.memory().free(DEVICE, rest);
    }

    @Test
    void initialMemoryThatIsNotThereOpensNothing() {
        assertThatThrownBy(() -> builder()
                        .functions(functions, functions)
                        .initialBytes(600 * MIB, DEVICE, stream)
                        .open())
                .isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(memory.pools().all()).isEmpty();
    }

    @Test
    void moreInitialMemoryThanTheLimitAllowsIsRefused() {
        assertThatThrownBy(() -> builder()
                        .functions(functions, functions)
                        .initialBytes(3 * MIB + 1, DEVICE, stream)
                        .limitBytes(3 * MIB)
                        .open())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("initialBytes is 3145729, more than limitBytes, which is 3145728");
        assertThat(functions.made).isEmpty();
        assertThat(memory.pools().all()).isEmpty();
    }

    @Test
    void aLimitIsExact() {
        MemoryPool pool = builder().tag("kv cache").limitBytes(3 * MIB).open();
        long first = pool.allocate(2 * MIB, DEVICE, stream);
        long second = pool.allocate(MIB, DEVICE, stream);
        assertThatThrownBy(() -> pool.allocate(1, DEVICE, stream))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("kv cache")
                .hasMessageContaining("limit of " + 3 * MIB);
        free(second);
        free(first, pool.allocate(MIB, DEVICE, stream));
    }

    @Test
    void aFunctionWithoutMemoryIsOutOfMemoryOnceIdleMemoryWentBack() {
        MemoryPool pool = functions.pool();
        long first = pool.allocate(400 * MIB, DEVICE, stream);
        assertThatThrownBy(() -> pool.allocate(400 * MIB, DEVICE, stream))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("pool " + pool.id());
        free(first);
        long larger = pool.allocate(450 * MIB, DEVICE, stream);
        assertThat(functions.deleted).containsExactly(first);
        free(larger);
    }

    @Test
    void aFunctionThatReturnsAMisalignedAddressIsToldSo() {
        List<Long> deleted = new ArrayList<>();
        MemoryPool pool = builder()
                .functions((_, _) -> 4097, (address, _, _) -> deleted.add(address))
                .open();
        assertThatThrownBy(() -> pool.allocate(1, DEVICE, stream)).isInstanceOf(AllocatorContractException.class);
        assertThat(deleted).containsExactly(4097L);
    }
}
