package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.CudaStream;
import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.testkit.StreamLatch;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;

/// Arenas of buffers.
abstract class ArenaContractTests extends BufferFixture {
    ArenaContractTests(BufferContract suite) {
        super(suite);
    }

    private long alive() {
        return allocator.statistics(DEVICE).liveBlocks();
    }

    private DeviceArena confined() {
        return closedLater(DeviceArena.builder(memory).confined().open(DEVICE, stream.handle()));
    }

    private DeviceArena shared() {
        return closedLater(DeviceArena.builder(memory).shared().open(DEVICE, stream.handle()));
    }

    @Test
    void buffersOfAnArenaAreApartAndHoldTheirContents() {
        DeviceArena arena = confined();
        List<DeviceBuffer> buffers = new ArrayList<>();
        for (int i = 1; i <= 100; i++) {
            DeviceBuffer buffer = arena.buffer(100L * i);
            assertThat(buffer.address() % 256).isZero();
            buffer.fill((byte) i);
            buffers.add(buffer);
        }
        for (int i = 1; i <= 100; i++) {
            assertThat(contents(buffers.get(i - 1))).isEqualTo(filled(100 * i, i));
        }
        assertThat(alive()).isEqualTo(1);
    }

    @Test
    void anArenaThatGrowsKeepsWhatItHas() {
        DeviceArena arena = confined();
        DeviceBuffer first = arena.buffer(MIB);
        first.fill((byte) 1);
        DeviceBuffer second = arena.buffer(3 * MIB);
        second.fill((byte) 2);
        assertThat(contents(first)).containsOnly(1);
        assertThat(contents(second)).containsOnly(2);
        assertThat(arena.usedBytes()).isEqualTo(4 * MIB);
        assertThat(alive()).isEqualTo(2);
    }

    @Test
    void aResetMakesBuffersStaleAndUsesTheirMemoryAgain() {
        DeviceArena arena = confined();
        DeviceBuffer stale = arena.buffer(1000);
        long address = stale.address();
        DeviceBuffer ofSlice = stale.slice(10, 10);
        arena.reset();
        for (DeviceBuffer each : List.of(stale, ofSlice)) {
            assertThat(each.isClosed()).isTrue();
            assertThatIllegalStateException().isThrownBy(each::address).withMessageContaining("can't be used: ");
        }
        assertThatIllegalStateException()
                .isThrownBy(stale::address)
                .withMessageContaining("it belongs to generation 1 of DeviceArena")
                .withMessageContaining("generation 2]");
        assertThat(arena.buffer(1000).address()).isEqualTo(address);
        assertThat(arena.generation()).isEqualTo(2);
    }

    @Test
    void aResetLeavesOneChunkForAllThatWasNeeded() {
        DeviceArena arena = confined();
        for (int i = 0; i < 10; i++) {
            arena.allocate(MIB);
        }
        arena.reset();
        for (int i = 0; i < 10; i++) {
            arena.allocate(MIB);
        }
        assertThat(alive()).isEqualTo(1);
        assertThat(arena.reservedBytes()).isEqualTo(10 * MIB);
    }

    @Test
    void theNextArenaOfItsNameBeginsWithWhatTheLastNeeded() {
        for (int i = 0; i < 2; i++) {
            try (DeviceArena arena = DeviceArena.builder(memory).name("step").open(DEVICE, stream.handle())) {
                for (int j = 0; j < 5; j++) {
                    arena.allocate(MIB);
                }
                assertThat(alive()).isEqualTo(i == 0 ? 4 : 1);
            }
        }
        assertThat(alive()).isZero();
    }

    @Test
    void closingABufferOfAnArenaEndsItsUseAlone() {
        DeviceArena arena = confined();
        DeviceBuffer buffer = arena.buffer(1000);
        buffer.close();
        assertThatIllegalStateException().isThrownBy(buffer::address);
        assertThat(alive()).isEqualTo(1);
    }

    @Test
    void aSliceOfAnArenasBufferEndsWithIt() {
        DeviceArena arena = confined();
        DeviceBuffer buffer = arena.buffer(1000);
        DeviceBuffer slice = buffer.slice(10, 100);
        slice.fill((byte) 3);
        assertThat(contents(slice)).containsOnly(3);
        buffer.close();
        assertThatIllegalStateException().isThrownBy(slice::address);
    }

    @Test
    void aClosedArenaEndsItsBuffers() {
        DeviceArena arena = confined();
        DeviceBuffer buffer = arena.buffer(1000);
        arena.close();
        arena.close();
        assertThat(alive()).isZero();
        assertThatIllegalStateException().isThrownBy(buffer::address);
        assertThatIllegalStateException().isThrownBy(() -> arena.allocate(1)).withMessageContaining("is closed");
        assertThatIllegalStateException().isThrownBy(arena::reset);
    }

    @Test
    void aConfinedArenaIsOneThreads() throws Exception {
        DeviceArena arena = confined();
        List<Class<?>> thrown = Collections.synchronizedList(new ArrayList<>());
        Thread.ofPlatform()
                .start(() -> {
                    for (Runnable use : List.<Runnable>of(() -> arena.allocate(1), arena::reset, arena::close)) {
                        try {
                            use.run();
                        } catch (WrongThreadException wrong) {
                            thrown.add(wrong.getClass());
                        }
                    }
                })
                .join();
        assertThat(thrown).hasSize(3);
        arena.allocate(1);
    }

    @Test
    void threadsThatShareAnArenaGetMemoryOfTheirOwn() throws Exception {
        DeviceArena arena = shared();
        Set<Long> addresses = ConcurrentHashMap.newKeySet();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            threads.add(Thread.startVirtualThread(() -> {
                for (int i = 0; i < 1000; i++) {
                    addresses.add(arena.allocate(1000));
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        List<Long> sorted = addresses.stream().sorted().toList();
        assertThat(sorted).hasSize(4000);
        for (int i = 1; i < sorted.size(); i++) {
            assertThat(sorted.get(i) - sorted.get(i - 1)).isGreaterThanOrEqualTo(1024);
        }
        assertThat(arena.usedBytes()).isGreaterThanOrEqualTo(4000 * 1024);
    }

    @Test
    void anArenaTakesItsMemoryFromThePoolItIsGiven() {
        try (MemoryPool pool = memory.pools().open("direct");
                DeviceArena arena = DeviceArena.builder(memory)
                        .from(pool)
                        .firstBytes(3 * MIB)
                        .open(DEVICE, stream.handle())) {
            arena.buffer(1000).fill((byte) 1);
            assertThat(alive()).isZero();
            assertThat(pool.statistics(DEVICE).requestedBytes()).isEqualTo(3 * MIB);
            stream.synchronize();
        }
    }

    @Test
    void memoryThatAnotherStreamUsesIsNotTheNextGenerations() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceArena arena = confined();
        DeviceBuffer buffer = arena.buffer(MIB);
        latch.hold(other.handle());
        buffer.fill((byte) 2, other.handle());
        arena.reset();
        DeviceBuffer next = arena.buffer(MIB);
        latch.release();
        next.fill((byte) 3);
        other.synchronize();
        assertThat(contents(next)).containsOnly(3);
    }

    @Test
    void sizesThatCanNotBeAreRefused() {
        DeviceArena arena = shared();
        assertThat(arena.allocate(0)).isZero();
        assertThat(arena.buffer(0).address()).isZero();
        assertThatIllegalArgumentException().isThrownBy(() -> arena.allocate(-1));
        for (long tooMuch : new long[] {1L << 60, Long.MAX_VALUE, Long.MAX_VALUE - 255}) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> arena.allocate(tooMuch));
        }
        assertThat(arena.reservedBytes()).isZero();
    }
}
