package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// Which uses a stream waits for.
final class StreamUsesTests {
    private final WrittenOrder order = new WrittenOrder();
    private final StreamUses uses = new StreamUses(order, 0);

    private void use(long stream) {
        uses.expect(stream);
        uses.record(stream);
    }

    @Test
    void aStreamWaitsForTheLastUseOfEach() {
        for (long stream : new long[] {3, 4, 5, 4, 6, 7}) {
            use(stream);
        }
        assertThat(order.open).as("one for each stream").containsExactlyInAnyOrder(1L, 3L, 4L, 5L, 6L);
        uses.await(9);
        assertThat(order.asked)
                .containsExactly("9 waits for 1", "9 waits for 4", "9 waits for 3", "9 waits for 5", "9 waits for 6");
        uses.clear();
        assertThat(order.open).isEmpty();
        order.asked.clear();
        uses.await(9);
        assertThat(order.asked).isEmpty();
    }

    @Test
    void aStreamThatIsOnlyExpectedHasPassed() {
        uses.expect(3);
        uses.expect(3);
        uses.await(9);
        assertThat(order.asked).containsExactly("9 waits for 0");
    }

    /// An ended stream may have had its handle.
    @Test
    void aStreamWaitsForItselfToo() {
        use(3);
        uses.await(3);
        assertThat(order.asked).containsExactly("3 waits for 1");
    }

    @Test
    void theLastUseStandsForTheOthers() {
        use(3);
        use(4);
        uses.recordLast(5);
        assertThat(order.open).containsExactly(3L);
        uses.await(9);
        assertThat(order.asked).containsExactly("9 waits for 3");
    }
}
