package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamUses;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Addresses are multiples, and blocks go back as the upstream knows them.
final class AlignedAllocatorTests extends AdaptorContract {
    @Override
    AlignedAllocator over(DeviceAllocator upstream) {
        return new AlignedAllocator(upstream, 1 << 20);
    }

    @ParameterizedTest
    @ValueSource(longs = {256, 512, 4096, 1 << 20})
    void addressesAreMultiples(long alignment) {
        AlignedAllocator aligned = new AlignedAllocator(upstream, alignment);
        for (int i = 0; i < 5; i++) {
            assertThat(aligned.allocate(100, DEVICE, STREAM) % alignment).isZero();
        }
    }

    @Test
    void aSizeThatCanNotBePaddedIsOutOfMemory() {
        assertThatThrownBy(() -> over(upstream).allocate(Long.MAX_VALUE, DEVICE, STREAM))
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        failure -> assertThat(failure)
                                .returns(Long.MAX_VALUE, DeviceOutOfMemoryException::byteSize)
                                .matches(DeviceOutOfMemoryException::canNeverFit));
    }

    @Test
    void aRefusalThatARetryCanNotChangeIsPassedOn() {
        assertThatThrownBy(() -> over(new LimitAllocator(upstream, 100)).allocate(10, DEVICE, STREAM))
                .hasMessageContaining("limit of 100 bytes")
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        failure -> assertThat(failure.canNeverFit()).isTrue());
    }

    @Test
    void anAddressThatIsNoBlockIsRefused() {
        AlignedAllocator aligned = over(upstream);
        assertThatThrownBy(() -> aligned.free(512, 100, DEVICE, STREAM))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("0x200");
    }

    @Test
    void abilitiesNameBlocksAsTheUpstreamKnowsThem() {
        AlignedAllocator aligned = new AlignedAllocator(new AbleUpstream(), 1 << 20);
        long address = aligned.allocate(100, DEVICE, STREAM);
        StreamUses uses = aligned.extension(StreamUses.class).orElseThrow();
        MemorySharing sharing = aligned.extension(MemorySharing.class).orElseThrow();
        MemoryReclaim reclaim = aligned.extension(MemoryReclaim.class).orElseThrow();

        assertThat(address).isEqualTo(1 << 20);
        assertThat(uses.recordUse(address, DEVICE, STREAM)).isTrue();
        assertThat(uses.recordUse(AbleUpstream.BLOCK, DEVICE, STREAM)).isFalse();
        assertThat(sharing.base(address, DEVICE)).map(Segment::address).contains(AbleUpstream.BLOCK);
        assertThat(sharing.base(AbleUpstream.BLOCK, DEVICE)).isEmpty();
        assertThat(sharing.grant(DEVICE, 1).available()).isTrue();
        assertThat(reclaim.canLend().available()).isFalse();
        assertThat(reclaim.tryAllocate(100, DEVICE, STREAM)).isZero();
        assertThat(reclaim.reclaim(ReclaimStep.TRIM, new DeviceOutOfMemoryException(100, DEVICE, ""), STREAM))
                .hasValue(7);
        assertThat(reclaim.trim(DEVICE, 0, TrimMode.SYNCHRONIZE))
                .map(TrimResult::returnedBytes)
                .contains(8L);
    }

    /// Has one block, which is not aligned, and all abilities that name blocks.
    private static final class AbleUpstream implements DeviceAllocator, MemoryReclaim, StreamUses, MemorySharing {
        static final long BLOCK = 256;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return BLOCK;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public Availability canLend() {
            return Availability.yes();
        }

        @Override
        public long tryAllocate(long byteSize, int device, long stream) {
            return BLOCK;
        }

        @Override
        public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
            return OptionalLong.of(7);
        }

        @Override
        public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
            return Optional.of(new TrimResult(8, OptionalLong.empty(), List.of()));
        }

        @Override
        public boolean recordUse(long address, int device, long stream) {
            return address == BLOCK;
        }

        @Override
        public Availability grant(int device, int peer) {
            return Availability.yes();
        }

        @Override
        public Optional<Segment> base(long address, int device) {
            return Optional.of(new Segment(address, 4096, device));
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 128, 300, -256, 1L << 41})
    void otherAlignmentsAreRefused(long alignment) {
        assertThatThrownBy(() -> new AlignedAllocator(upstream, alignment))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(Long.toString(alignment));
    }
}
