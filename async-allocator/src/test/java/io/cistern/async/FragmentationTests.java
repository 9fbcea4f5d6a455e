package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// A pool that has room enough, but in pieces: 53 of 84 GB in use and 132 MB wanted, here at a 16th of the size.
class FragmentationTests extends AsyncFixture {
    private static final long WANTED = 132 * MIB;
    private static final long PIECE = 96 * MIB;
    private static final int PIECES = 56;

    FragmentationTests() {
        super(PIECES * PIECE);
    }

    @Test
    void theDriverMovesIdlePagesUnderWhatFitsInPieces() {
        long pool = gpu.pools().create(MemoryPoolProperties.onDevice(DEVICE));
        gpu.pools().setAttribute(DEVICE, pool, PoolAttribute.RELEASE_THRESHOLD, -1);
        List<Long> live = new ArrayList<>();
        for (int i = 0; i < PIECES; i++) {
            live.add(gpu.pools().allocateFrom(DEVICE, pool, PIECE, stream));
        }
        List<Long> third = everyThird(live);
        third.forEach(address -> gpu.pools().free(DEVICE, address, stream));
        gpu.streams().synchronize(DEVICE, stream);
        assertThat(attribute(pool, PoolAttribute.USED_CURRENT)).isEqualTo((PIECES - third.size()) * PIECE);
        gpu.pools().allocateFrom(DEVICE, pool, WANTED, stream);
        assertThat(attribute(pool, PoolAttribute.RESERVED_CURRENT)).isEqualTo(PIECES * PIECE);
    }

    /// Then the driver does not know that the pieces are idle.
    @Test
    void withoutOpportunismSynchronizeAndTrimJoinThePieces() {
        Allocator async = memory.open("async:reuse_allow_opportunistic=false");
        List<Long> live = new ArrayList<>();
        for (int i = 0; i < PIECES; i++) {
            live.add(async.allocate(PIECE, DEVICE, stream));
        }
        everyThird(live).forEach(address -> memory.free(address, stream));
        long address = async.allocate(WANTED, DEVICE, stream);
        assertThat(figure(async, "num_alloc_retries")).isEqualTo(1);
        assertThat(figure(async, "num_sync_all_streams")).isEqualTo(1);
        assertThat(figure(async, "pool.trims")).isEqualTo(1);
        assertThat(figure(async, "pool.trimmed_bytes")).isEqualTo(PIECES / 3 * PIECE + (PIECES % 3 > 0 ? PIECE : 0));
        assertThat(figure(async, "num_ooms")).isZero();
        memory.free(address, stream);
        freeAll(live);
    }

    private static List<Long> everyThird(List<Long> live) {
        List<Long> third = new ArrayList<>();
        for (int i = 0; i < live.size(); i += 3) {
            third.add(live.get(i));
        }
        live.removeAll(third);
        return third;
    }

    private void freeAll(List<Long> addresses) {
        addresses.forEach(address -> memory.free(address, stream));
    }

    /// One small block that lives on in each page keeps it from going back.
    @Test
    void smallBlocksAmongLargeOnesKeepThePagesThatTrimmingNeeds() {
        Allocator async = memory.open("async");
        List<Long> small = fillWithSmallAmongLarge(async);
        assertThatThrownBy(() -> async.allocate(WANTED, DEVICE, stream))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("are idle between them");
        freeAll(small);
    }

    @Test
    void aPoolForSmallBlocksLetsThePagesOfLargeOnesGo() {
        Allocator async = memory.open("async:small_pool=1MiB");
        List<Long> small = fillWithSmallAmongLarge(async);
        memory.free(async.allocate(WANTED, DEVICE, stream), stream);
        assertThat(figure(async, "pool.count")).isEqualTo(2);
        freeAll(small);
    }

    /// Fills the device, and then leaves a block of 1 MiB in every 32, and one of 96.
    private List<Long> fillWithSmallAmongLarge(Allocator async) {
        List<Long> small = new ArrayList<>();
        List<Long> large = new ArrayList<>();
        for (int i = 0; i < PIECES * 3 - 6; i++) {
            small.add(async.allocate(MIB, DEVICE, stream));
            large.add(async.allocate(31 * MIB, DEVICE, stream));
        }
        small.add(async.allocate(PIECE, DEVICE, stream));
        freeAll(large);
        return small;
    }
}
