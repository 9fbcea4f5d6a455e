package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.function.LongPredicate;
import org.junit.jupiter.api.Test;

/// Handles that the driver refuses are kept, however many there are, until it takes them.
final class RefusedHandlesTests {
    private final Map<Long, Long> released = new HashMap<>();
    private LongPredicate takes = _ -> false;
    private final RefusedHandles refused = new RefusedHandles((handle, byteSize) -> {
        if (!takes.test(handle)) {
            return false;
        }
        assertThat(released.put(handle, byteSize)).as("released once").isNull();
        return true;
    });

    @Test
    void eachIsReleasedOnceWithItsSize() {
        Map<Long, Long> kept = new HashMap<>();
        long sum = 0;
        for (long handle = 1; handle <= 1000; handle++) {
            refused.keep(handle, handle * 3);
            kept.put(handle, handle * 3);
            sum += handle * 3;
            assertThat(refused.byteSize()).isEqualTo(sum);
        }
        refused.retry();
        assertThat(refused.byteSize()).isEqualTo(sum);
        takes = handle -> handle % 3 == 0;
        refused.retry();
        assertThat(released).hasSize(333);
        assertThat(refused.byteSize())
                .isEqualTo(sum
                        - released.values().stream().mapToLong(Long::longValue).sum());
        takes = _ -> true;
        refused.retry();
        assertThat(released).isEqualTo(kept);
        assertThat(refused.byteSize()).isZero();
    }
}
