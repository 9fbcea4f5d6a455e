package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.cuda.PointerAttribute;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// A pool for each stream.
class StreamPoolTests extends AsyncFixture {
    private long poolOn(Allocator async, long onStream) {
        long address = async.allocate(MIB, DEVICE, onStream);
        long pool = gpu.memory().attribute(DEVICE, PointerAttribute.MEMPOOL_HANDLE, address);
        memory.free(address, onStream);
        return pool;
    }

    @Test
    void eachStreamHasAPoolThatStays() {
        Allocator async = memory.open("async:per_stream=true");
        Set<Long> pools = new HashSet<>();
        List<Long> streams = new ArrayList<>(List.of(0L));
        for (int i = 0; i < 40; i++) {
            streams.add(gpu.streams().create(DEVICE));
        }
        streams.forEach(each -> pools.add(poolOn(async, each)));
        streams.forEach(each -> pools.add(poolOn(async, each)));
        assertThat(pools).hasSize(41);
        assertThat(figure(async, "pool.count")).isEqualTo(41);
    }

    @Test
    void bothNamesOfTheLegacyDefaultStreamHaveOne() {
        Allocator async = memory.open("async:per_stream=true");
        assertThat(poolOn(async, 0)).isEqualTo(poolOn(async, 1));
    }

    @Test
    void whatOneStreamFreedIsNotAnotherOnes() {
        Allocator async = memory.open("async:per_stream=true");
        memory.free(async.allocate(64 * MIB, DEVICE, stream), stream);
        gpu.streams().synchronize(DEVICE, stream);
        memory.free(async.allocate(64 * MIB, DEVICE, other), other);
        assertThat(async.reservedBytes(DEVICE)).hasValue(128 * MIB);
    }

    @Test
    void thePoolOfAStreamThatEndedServesTheNextOne() {
        Allocator async = memory.open("async:per_stream=true");
        long ending = gpu.streams().create(DEVICE);
        long pool = poolOn(async, ending);
        poolOn(async, stream);
        memory.streamClosing(DEVICE, ending);
        gpu.streams().destroy(DEVICE, ending);
        assertThat(poolOn(async, other)).isEqualTo(pool);
        assertThat(figure(async, "pool.count")).isEqualTo(2);
    }
}
