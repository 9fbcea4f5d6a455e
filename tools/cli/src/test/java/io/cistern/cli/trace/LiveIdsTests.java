package io.cistern.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The hash table of ids agrees with Java's own map.
final class LiveIdsTests {
    @Test
    void itAnswersAsAMapDoes() {
        long seed = 20_260_101L;
        Random random = new Random(seed);
        LiveIds ids = new LiveIds();
        Map<Long, Integer> model = new HashMap<>();
        for (int i = 0; i < 100_000; i++) {
            long id = random.nextBoolean() ? random.nextInt(30_000) : random.nextLong();
            assertThat(ids.get(id)).as("seed %s, step %s", seed, i).isEqualTo(model.getOrDefault(id, LiveIds.UNKNOWN));
            int slot = random.nextInt(4) == 0 ? LiveIds.FREED : random.nextInt(1000);
            ids.put(id, slot);
            model.put(id, slot);
        }
        model.forEach((id, slot) -> assertThat(ids.get(id)).isEqualTo(slot));
    }
}
