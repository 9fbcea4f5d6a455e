package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.MemoryPool;
import org.junit.jupiter.api.Test;

/// A pool over two functions on a device where they can give less than a segment that blocks share.
class LittleRoomInPoolTests extends PoolFixture {
    LittleRoomInPoolTests() {
        super(10 * MIB);
    }

    @Test
    void aRequestIsServedThatHasRoomAlone() {
        Functions functions = new Functions();
        MemoryPool pool = functions.pool();

        long block = pool.allocate(5 * MIB, DEVICE, stream);

        assertThat(pool.reservedBytes(DEVICE)).hasValue(6 * MIB);
        free(block);
        pool.close();
        assertThat(functions.deleted).containsExactlyElementsOf(functions.made);
    }
}
