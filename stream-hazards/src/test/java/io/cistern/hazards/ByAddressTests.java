package io.cistern.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ByAddressTests {
    /// A sorted map grows to hundreds of values, shrinks to none, and so on.
    @ParameterizedTest
    @ValueSource(longs = {10, 1000, Long.MAX_VALUE})
    void isASortedMap(long bound) {
        SplittableRandom random = new SplittableRandom(bound);
        ByAddress<String> values = new ByAddress<>();
        TreeMap<Long, String> expected = new TreeMap<>();
        for (int step = 0; step < 40_000; step++) {
            Long address = random.nextLong(bound);
            boolean grows = step / 2000 % 2 == 0;
            if (grows) {
                values.put(address, "v" + step);
                expected.put(address, "v" + step);
            } else if (!expected.isEmpty()) {
                Long known = random.nextBoolean() ? expected.ceilingKey(address) : address;
                address = known == null ? address : known;
                assertThat(values.remove(address)).isEqualTo(expected.remove(address));
            }
            Long asked = random.nextLong(bound);
            assertThat(values.get(asked)).isEqualTo(expected.get(asked));
            assertThat(values.floor(asked)).isEqualTo(value(expected.floorEntry(asked)));
            assertThat(values.ceiling(asked)).isEqualTo(value(expected.ceilingEntry(asked)));
            assertThat(values.isEmpty()).isEqualTo(expected.isEmpty());
        }
    }

    private static String value(Map.Entry<Long, String> entry) {
        return entry == null ? null : entry.getValue();
    }
}
