package io.cistern.caching.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A batch keeps its addresses in order, however many there are, and always has room for two in hand.
final class AddressBatchTests {
    private final AddressBatch batch = new AddressBatch();

    private long[] addresses() {
        return Arrays.copyOf(batch.addresses, batch.count);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 29, 30, 31, 32, 33, 61, 62, 63, 1000})
    void addressesKeepTheirOrderAndRoomIsLeftForTwo(int count) {
        long[] all = LongStream.rangeClosed(0, count).toArray();
        for (int i = 1; i <= count; i++) {
            batch.add(all[i]);
        }
        assertThat(batch.addresses).hasSizeBetween(count + 2, Math.max(32, 2 * (count + 2)));
        batch.addInHand(-1);
        batch.addInHand(-2);
        batch.removeFirst(count);
        batch.addAll(all, 1, count + 1);
        assertThat(batch.addresses).hasSizeGreaterThanOrEqualTo(count + 4);
        batch.removeFirst(2);
        assertThat(addresses()).isEqualTo(LongStream.rangeClosed(1, count).toArray());
        batch.reverse();
        assertThat(addresses())
                .isEqualTo(
                        LongStream.rangeClosed(1, count).map(i -> count + 1 - i).toArray());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 30, 31, 1000})
    void manyAtOnceLeaveRoomForTwoToo(int count) {
        batch.add(0);
        batch.addAll(LongStream.rangeClosed(0, count).toArray(), 1, count + 1);
        batch.addInHand(count + 1);
        batch.addInHand(count + 2);
        assertThat(addresses()).isEqualTo(LongStream.rangeClosed(0, count + 2).toArray());
    }
}
