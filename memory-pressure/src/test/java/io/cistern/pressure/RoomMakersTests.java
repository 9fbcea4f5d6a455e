package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;

/// How long a refused request is tried again, and which requests a test lets fail.
final class RoomMakersTests {
    private final RoomMakers makers = new RoomMakers();
    private final List<String> asked = new ArrayList<>();
    private final DeviceOutOfMemoryException first = new DeviceOutOfMemoryException(100, 0, "first");
    private final DeviceOutOfMemoryException second = new DeviceOutOfMemoryException(100, 0, "second");

    /// Makes room so many times.
    private RoomMaker maker(String name, int times) {
        int[] left = {times};
        return refusal -> {
            asked.add(name + " " + refusal.detail());
            return left[0]-- > 0;
        };
    }

    private static LongSupplier attempts(Object... outcomes) {
        Deque<Object> left = new ArrayDeque<>(List.of(outcomes));
        return () -> {
            if (left.peek() instanceof DeviceOutOfMemoryException failure) {
                left.remove();
                throw failure;
            }
            return (Long) left.remove();
        };
    }

    @Test
    void theRequestIsTriedAgainWhileRoomIsMade() {
        makers.add(maker("one", 1));
        makers.add(maker("two", 5));
        assertThat(makers.retry(first, attempts(second, second, 4096L))).isEqualTo(4096);
        assertThat(asked).containsExactly("one first", "one second", "two second", "one second", "two second");
    }

    @Test
    void theLastRefusalIsThrownWhenNoRoomIsMade() {
        assertThatThrownBy(() -> makers.retry(first, attempts(4096L))).isSameAs(first);
        RoomMaker maker = maker("one", 1);
        makers.add(maker);
        assertThatThrownBy(() -> makers.retry(first, attempts(second, 4096L))).isSameAs(second);
        asked.clear();
        makers.remove(maker);
        assertThatThrownBy(() -> makers.retry(first, attempts(4096L))).isSameAs(first);
        assertThat(asked).isEmpty();
    }

    @Test
    void noRoomHelpsAgainstALimit() {
        makers.add(maker("one", 9));
        DeviceOutOfMemoryException limit = DeviceOutOfMemoryException.ofLimit(100, 0, "limit", false);
        assertThatThrownBy(() -> makers.retry(limit, attempts(4096L))).isSameAs(limit);
        assertThat(asked).isEmpty();
        DeviceOutOfMemoryException above = DeviceOutOfMemoryException.aboveDevice(100, 0, 99);
        assertThatThrownBy(() -> makers.retry(above, attempts(4096L))).isSameAs(above);
        assertThat(asked).isEmpty();
        assertThatThrownBy(() -> makers.retry(first, attempts(limit, 4096L))).isSameAs(limit);
        assertThat(asked).hasSize(1);
    }

    @Test
    void forcedFailuresComeAfterSomeAllocationsAndEnd() {
        ForcedOom forced = new ForcedOom(true, 2, 2);
        assertThat(forced.isSplit()).isTrue();
        assertThat(new ForcedOom(false, 0, 0).isSplit()).isFalse();
        assertThat(new ForcedOom(false, 0, 0).takes()).isFalse();
        for (int i = 0; i < 2; i++) {
            assertThat(forced.takes()).isFalse();
            forced.succeeded();
        }
        assertThat(forced.takes()).isTrue();
        forced.succeeded();
        assertThat(forced.takes()).isTrue();
        assertThat(forced.takes()).isFalse();
        assertThatIllegalArgumentException().isThrownBy(() -> new ForcedOom(true, -1, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> new ForcedOom(true, 0, -1));
    }
}
