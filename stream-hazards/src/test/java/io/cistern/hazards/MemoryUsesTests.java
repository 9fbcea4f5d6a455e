package io.cistern.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.hazards.StreamHazard.Kind;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// What is kept of freed memory.
class MemoryUsesTests {
    private static final long BYTES = 1000;
    private static final Call CALL = new Call("call");

    private final List<Kind> found = new ArrayList<>();
    private final StreamClocks clocks = new StreamClocks((_, _) -> false);
    private final MemoryUses uses = new MemoryUses(clocks, (kind, _, _, _, _) -> found.add(kind));

    private void allocate(long address, long byteSize, long stream) {
        uses.allocated(clocks.next(0, stream), address, byteSize, CALL);
    }

    private void free(long address, long stream) {
        uses.freed(clocks.stream(0, stream), address, CALL);
    }

    @Test
    void freedBlocksAreForgottenTheOldestFirst() {
        int most = 1 << 16;
        for (int i = 1; i <= most + 10; i++) {
            allocate(i * BYTES, BYTES, 100);
            free(i * BYTES, 100);
            assertThat(uses.freedBlocks()).isEqualTo(Math.min(i, most));
        }
        allocate(BYTES, 9 * BYTES, 200);
        assertThat(found).as("of what is forgotten").isEmpty();
        allocate((most + 1) * BYTES, BYTES, 200);
        assertThat(found).containsExactly(Kind.REUSED_TOO_EARLY);
    }

    @Test
    void freedBlocksAreForgottenOnceOthersLieOnAllTheirParts() {
        allocate(BYTES, 4 * BYTES, 100);
        free(BYTES, 100);
        allocate(2 * BYTES, BYTES, 100);
        allocate(4 * BYTES, 2 * BYTES, 100);
        allocate(BYTES, BYTES, 100);
        assertThat(uses.freedBlocks()).isEqualTo(1);
        allocate(3 * BYTES, BYTES, 200);
        assertThat(found).as("on another stream").containsExactly(Kind.REUSED_TOO_EARLY);
        assertThat(uses.freedBlocks()).isZero();
    }

    @Test
    void memoryThatThePageTakesAwayIsForgotten() {
        uses.mapped(BYTES, BYTES, 7);
        allocate(BYTES, BYTES, 100);
        free(BYTES, 100);
        uses.unmapped(BYTES, BYTES);
        uses.mapped(5 * BYTES, BYTES, 7);
        uses.released(7);
        allocate(5 * BYTES, BYTES, 200);
        assertThat(found).isEmpty();
        allocate(BYTES, BYTES, 200);
        assertThat(uses.freedBlocks()).isZero();
    }

    @Test
    void aPageKeepsItsPastWhenItIsMappedElsewhere() {
        uses.mapped(BYTES, BYTES, 7);
        uses.mapped(2 * BYTES, BYTES, 8);
        uses.mapped(3 * BYTES, BYTES, 9);
        allocate(BYTES, 3 * BYTES, 100);
        free(BYTES, 100);
        uses.unmapped(2 * BYTES, BYTES);
        uses.mapped(7 * BYTES, BYTES, 8);
        uses.mapped(2 * BYTES, BYTES, 10);
        allocate(2 * BYTES, BYTES, 200);
        assertThat(found).as("on a new page").isEmpty();
        allocate(7 * BYTES, BYTES, 200);
        assertThat(found).as("on the page from the middle").containsExactly(Kind.REUSED_TOO_EARLY);
        allocate(BYTES, BYTES, 200);
        allocate(3 * BYTES, BYTES, 200);
        assertThat(found).as("on the pages around it").hasSize(3);
        assertThat(uses.freedBlocks()).isZero();
    }

    @Test
    void aPageMappedTwiceHasOnePast() {
        uses.mapped(BYTES, BYTES, 7);
        uses.mapped(5 * BYTES, BYTES, 7);
        allocate(BYTES, BYTES, 100);
        free(BYTES, 100);
        allocate(5 * BYTES, BYTES, 200);
        assertThat(found).containsExactly(Kind.REUSED_TOO_EARLY);
    }
}
