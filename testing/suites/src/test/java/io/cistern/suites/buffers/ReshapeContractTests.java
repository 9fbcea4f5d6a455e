package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.DeviceElements;
import io.cistern.errors.UnknownAddressException;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The origin of a buffer's memory, and buffers made from others: copies, other sizes, other streams.
abstract class ReshapeContractTests extends BufferFixture {
    ReshapeContractTests(BufferContract suite) {
        super(suite);
    }

    @Test
    void aBufferComesFromTheNamedPoolWhateverTheScope() {
        Allocator direct = memory.open("direct");
        MemoryPool pool = closedLater(memory.pools().open("caching"));
        try (Scope _ = allocator.enter();
                DeviceBuffer ofAllocator = DeviceBuffer.allocate(direct, KIB, DEVICE, stream.handle());
                DeviceBuffer ofPool = DeviceBuffer.allocate(pool, KIB, DEVICE, stream.handle())) {
            assertThat(ofAllocator.allocator()).isSameAs(direct);
            assertThat(ofPool.allocator()).isSameAs(pool);
            assertThat(ofPool.slice(10, 10).allocator()).isSameAs(ofPool.allocator());
            assertThat(buffer(KIB).allocator()).isSameAs(allocator);
        }
        assertThatExceptionOfType(UnknownAddressException.class)
                .isThrownBy(() -> buffer(0).allocator());
    }

    @Test
    void anAddressCanBeAlignedFurther() {
        for (long alignment = 1; alignment <= 64 * KIB; alignment *= 2) {
            try (DeviceBuffer aligned =
                    DeviceBuffer.allocateAligned(memory, 3000, alignment, DEVICE, stream.handle())) {
                assertThat(aligned.address() % alignment).isZero();
                assertThat(aligned.byteSize()).isEqualTo(3000);
                aligned.fill((byte) 3);
                assertThat(contents(aligned)).containsOnly(3);
            }
        }
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DeviceBuffer.allocateAligned(memory, 1, 300, DEVICE, stream.handle()));
    }

    @Test
    void aCopyHasTheContentsAndAnEndOfItsOwn() {
        byte[] bytes = random(5000);
        DeviceBuffer original = bufferOf(bytes);
        DeviceBuffer copy = closedLater(original.copy());
        original.fill((byte) 0);
        original.close();
        assertThat(contents(copy)).isEqualTo(bytes);
        assertThat(copy.stream()).isEqualTo(stream.handle());
    }

    @Test
    void aLargerBufferOfTheSameAllocatorHasTheContents() {
        MemoryPool pool = closedLater(memory.pools().open("caching"));
        DeviceBuffer small = DeviceBuffer.allocate(pool, KIB, DEVICE, stream.handle());
        small.fill((byte) 5);
        DeviceBuffer large = closedLater(small.resize(3 * MIB));
        assertThat(small.isClosed()).isTrue();
        assertThat(large.byteSize()).isEqualTo(3 * MIB);
        assertThat(large.allocator()).isSameAs(pool);
        assertThat(contents(large.slice(0, KIB))).containsOnly(5);
        assertThat(pool.liveBlockCount()).isOne();
    }

    @Test
    void aSmallerBufferKeepsItsBlock() {
        DeviceBuffer large = bufferOf(random(MIB));
        long address = large.address();
        DeviceBuffer small = closedLater(large.resize(100));
        assertThat(large.isClosed()).isTrue();
        assertThat(small.address()).isEqualTo(address);
        assertThat(contents(small)).isEqualTo(java.util.Arrays.copyOf(random(MIB), 100));
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isOne();
        small.close();
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
    }

    @Test
    void aBufferGrowsInItsBlockUpToItsCapacity() {
        DeviceBuffer large = bufferOf(random(MIB));
        assertThat(large.capacityBytes()).isEqualTo(MIB);
        long address = large.address();
        DeviceBuffer small = large.resize(100);
        assertThat(small.capacityBytes()).isEqualTo(MIB);
        DeviceBuffer empty = small.resize(0);
        assertThat(empty.address()).isZero();
        assertThat(empty.capacityBytes()).isEqualTo(MIB);
        DeviceBuffer again = closedLater(empty.resize(MIB));
        assertThat(again.address()).isEqualTo(address);
        assertThat(contents(again)).isEqualTo(random(MIB));
        assertThat(allocator.statistics(DEVICE).allocations()).isOne();
    }

    @Test
    void anAlignedBufferGrowsWhereItIs() {
        DeviceBuffer aligned = DeviceBuffer.allocateAligned(memory, 3000, 64 * KIB, DEVICE, stream.handle());
        long address = aligned.address();
        DeviceBuffer again = aligned.resize(0).resize(3000);
        assertThat(again.address()).isEqualTo(address);
        DeviceBuffer most = closedLater(again.resize(again.capacityBytes()));
        assertThat(most.address()).isEqualTo(address);
        most.fill((byte) 1); // a simulated GPU reports bytes beyond the block
        assertThat(contents(most)).containsOnly(1);
    }

    @Test
    void reservedRoomTakesRowsWithoutAnotherBlock() {
        MemoryPool pool = closedLater(memory.pools().open("caching"));
        DeviceBuffer rows =
                DeviceBuffer.allocate(pool, 100, DEVICE, stream.handle()).reserve(MIB);
        assertThat(rows.byteSize()).isEqualTo(100);
        assertThat(rows.allocator()).isSameAs(pool);
        long allocations = pool.statistics(DEVICE).allocations();
        rows.fill((byte) 7);
        for (int i = 0; i < 10; i++) {
            rows = rows.resize(rows.byteSize() + 100 * KIB);
        }
        rows = rows.reserve(KIB);
        assertThat(rows.capacityBytes()).isEqualTo(MIB);
        assertThat(pool.statistics(DEVICE).allocations()).isEqualTo(allocations);
        assertThat(contents(rows.slice(0, 100))).containsOnly(7);
        rows = closedLater(rows.resize(2 * MIB));
        assertThat(contents(rows.slice(0, 100))).containsOnly(7);
        assertThat(pool.statistics(DEVICE).requestedBytes()).isEqualTo(2 * MIB);
    }

    @Test
    void shrinkingToFitGivesTheRestOfTheBlockBack() {
        DeviceBuffer small = bufferOf(random(MIB)).resize(100);
        assertThat(allocator.statistics(DEVICE).requestedBytes()).isEqualTo(MIB);
        DeviceBuffer fitting = closedLater(small.shrinkToFit());
        assertThat(small.isClosed()).isTrue();
        assertThat(contents(fitting)).isEqualTo(java.util.Arrays.copyOf(random(MIB), 100));
        assertThat(allocator.statistics(DEVICE).requestedBytes()).isEqualTo(100);
        long address = fitting.address();
        assertThat(closedLater(fitting.shrinkToFit()).address()).isEqualTo(address);
        DeviceBuffer none = closedLater(buffer(KIB).resize(0).shrinkToFit());
        assertThat(none.capacityBytes()).isZero();
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isOne();
    }

    @Test
    void aBlockThatOthersHoldGrowsIntoNobodysBytes() {
        DeviceBuffer whole = bufferOf(random(KIB));
        DeviceBuffer tail = whole.retainedSlice(512, 512);
        DeviceBuffer head = whole.resize(512);
        assertThat(head.capacityBytes()).isEqualTo(512);
        assertThat(tail.capacityBytes()).isEqualTo(512);
        head = closedLater(head.resize(KIB));
        head.fill((byte) 0);
        assertThat(contents(tail)).isEqualTo(java.util.Arrays.copyOfRange(random(KIB), 512, 1024));
        tail.close();
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isOne();
    }

    @Test
    void onlyWhatOwnsItsMemoryIsResizedOrMoved() {
        DeviceBuffer whole = buffer(KIB);
        DeviceArena arena = closedLater(DeviceArena.builder(memory).open(DEVICE, stream.handle()));
        for (DeviceBuffer view : List.of(whole.slice(0, 512), arena.buffer(512))) {
            assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(() -> view.resize(100));
            assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(() -> view.resize(2000));
            assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(() -> view.reserve(100));
            assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(view::shrinkToFit);
            assertThat(view.capacityBytes()).isEqualTo(512);
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> view.moveToStream(stream.handle()));
        }
        assertThatIllegalArgumentException().isThrownBy(() -> whole.resize(-1));
        assertThatIllegalArgumentException().isThrownBy(() -> whole.reserve(-1));
        DeviceBuffer none = closedLater(buffer(0).resize(10));
        assertThat(none.address()).isNotZero();
        whole.close();
        assertThatIllegalStateException().isThrownBy(() -> whole.resize(10));
        assertThatIllegalStateException().isThrownBy(whole::capacityBytes);
        assertThatIllegalStateException().isThrownBy(() -> whole.moveToStream(stream.handle()));
    }

    @Test
    void onAnotherStreamItIsUsedAfterTheWorkOfTheFirst() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer first = buffer(MIB);
        latch.hold(stream.handle());
        first.fill((byte) 1);
        DeviceBuffer moved = first.moveToStream(other.handle());
        assertThat(first.isClosed()).isTrue();
        moved.fill((byte) 2);
        latch.release();
        assertThat(contents(moved)).containsOnly(2);
        assertThat(moved.stream()).isEqualTo(other.handle());
        moved.close();
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
    }

    @Test
    void wordsAndElementsAreFilled() {
        DeviceBuffer buffer = buffer(56);
        buffer.fillWords(0x01020304);
        assertThat(buffer.elements(ValueLayout.JAVA_INT).toInts()).containsOnly(0x01020304);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> buffer.slice(0, 55).fillWords(1));
        assertThatIllegalArgumentException().isThrownBy(() -> buffer.slice(1, 4).fillWords(1));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> buffer.slice(0, 55).fillShorts((short) 1))
                .withMessageContaining("2 bytes");
        assertThatIllegalArgumentException().isThrownBy(() -> buffer.slice(1, 4).fillShorts((short) 1));
        elements(buffer, ValueLayout.JAVA_SHORT).slice(1, 26).fill(Float.floatToFloat16(0.5f));
        short[] halves = elements(buffer, ValueLayout.JAVA_SHORT).toShorts();
        assertThat(halves[0]).isEqualTo((short) 0x0304);
        assertThat(halves[27]).isEqualTo((short) 0x0102);
        assertThat(java.util.Arrays.copyOfRange(halves, 1, 27)).containsOnly(Float.floatToFloat16(0.5f));
        elements(buffer, ValueLayout.JAVA_FLOAT).fill(1.5f);
        assertThat(elements(buffer, ValueLayout.JAVA_FLOAT).toFloats()).containsOnly(1.5f);
        elements(buffer, ValueLayout.JAVA_INT).fill(-7);
        assertThat(elements(buffer, ValueLayout.JAVA_INT).toInts()).containsOnly(-7);
        elements(buffer, ValueLayout.JAVA_LONG).fill(1L << 40);
        assertThat(elements(buffer, ValueLayout.JAVA_LONG).toLongs()).containsOnly(1L << 40);
        elements(buffer, ValueLayout.JAVA_DOUBLE).fill(Math.PI);
        assertThat(elements(buffer, ValueLayout.JAVA_DOUBLE).toDoubles()).containsOnly(Math.PI);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> elements(buffer, ValueLayout.JAVA_DOUBLE).fill(1L));
        buffer(0).elements(ValueLayout.JAVA_LONG).fill(1L);
    }

    private static DeviceElements elements(DeviceBuffer buffer, ValueLayout layout) {
        return buffer.elements(layout);
    }

    @Test
    void vectorsAreCountedAddressedAndCopied() {
        MemoryLayout float4 = MemoryLayout.sequenceLayout(4, ValueLayout.JAVA_FLOAT);
        DeviceBuffer buffer = closedLater(DeviceBuffer.allocate(10, float4, stream));
        buffer.elements(ValueLayout.JAVA_FLOAT).fill(1f);
        DeviceElements vectors = buffer.elements(float4);
        assertThat(vectors.count()).isEqualTo(10);
        assertThat(vectors.address(3)).isEqualTo(buffer.address() + 48);
        vectors.slice(9, 1).copyFrom(MemorySegment.ofArray(new float[] {2, 3, 4, 5}));
        float[] all = new float[40];
        vectors.copyTo(MemorySegment.ofArray(all));
        assertThat(all).startsWith(1, 1).endsWith(1, 2, 3, 4, 5);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> buffer.slice(0, 8).elements(float4))
                .withMessageContaining("16 bytes");
        assertThatIllegalArgumentException().isThrownBy(() -> vectors.getFloat(0));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> buffer.elements(MemoryLayout.sequenceLayout(0, ValueLayout.JAVA_FLOAT)));
    }

    @Test
    void oneElementIsReadAndWritten() {
        DeviceBuffer buffer = buffer(64);
        buffer.fill((byte) 0);
        DeviceElements floats = buffer.elements(ValueLayout.JAVA_FLOAT);
        floats.set(15, 2.5f);
        assertThat(floats.getFloat(15)).isEqualTo(2.5f);
        assertThat(floats.getFloat(14)).isZero();
        DeviceElements doubles = buffer.elements(ValueLayout.JAVA_DOUBLE);
        doubles.set(1, -0.125);
        assertThat(doubles.getDouble(1)).isEqualTo(-0.125);
        DeviceElements ints = buffer.elements(ValueLayout.JAVA_INT);
        ints.set(0, 42);
        assertThat(ints.getInt(0)).isEqualTo(42);
        DeviceElements longs = buffer.elements(ValueLayout.JAVA_LONG);
        longs.set(2, 1L << 50);
        assertThat(longs.getLong(2)).isEqualTo(1L << 50);
        DeviceElements shorts = buffer.elements(ValueLayout.JAVA_SHORT);
        shorts.set(30, (short) -5);
        assertThat(shorts.getShort(30)).isEqualTo((short) -5);
        DeviceElements bytes = buffer.elements(ValueLayout.JAVA_BYTE);
        bytes.set(63, (byte) -1);
        assertThat(bytes.getByte(63)).isEqualTo((byte) -1);
        assertThatIllegalArgumentException().isThrownBy(() -> floats.set(0, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> floats.getInt(0));
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> floats.getFloat(16));
    }

    @Test
    void theOwnerOfForeignMemoryIsToldOnceWhenTheLastHolderIsClosed() {
        long address = driver.memory().allocate(DEVICE, 3 * KIB);
        List<Long> told = new ArrayList<>();
        DeviceBuffer foreign = DeviceBuffer.ofForeign(
                memory, address, 3 * KIB, DEVICE, stream.handle(), (block, _) -> told.add(block));
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        DeviceBuffer.ofForeign(memory, address, KIB, DEVICE, stream.handle(), (_, _) -> told.add(-1L)));
        DeviceBuffer part = foreign.retainedSlice(0, KIB);
        assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(() -> foreign.resize(4 * KIB));
        foreign.close();
        assertThat(told).isEmpty();
        part.close();
        part.close();
        assertThat(told).containsExactly(address);
        driver.memory().free(DEVICE, address);
    }

    @Test
    void anOwnerThatThrowsKeepsNothingOpen() {
        long address = driver.memory().allocate(DEVICE, KIB);
        DeviceBuffer foreign = DeviceBuffer.ofForeign(memory, address, KIB, DEVICE, stream.handle(), (_, _) -> {
            throw new IllegalStateException("broken");
        });
        foreign.close();
        assertThat(foreign.isClosed()).isTrue();
        assertThat(memory.liveBlocks()).isEmpty();
        driver.memory().free(DEVICE, address);
    }
}
