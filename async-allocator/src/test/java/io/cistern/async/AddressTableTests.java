package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class AddressTableTests {
    private static final int ADDRESSES = 300;

    private final AddressTable<Numbered> table = new AddressTable<>();
    private final Map<Long, Numbered> model = new HashMap<>();

    private static final class Numbered extends AddressTable.Entry {
        Numbered(long address) {
            super(address);
        }
    }

    private void addOrRemove(long address) {
        Numbered present = model.remove(address);
        if (present == null) {
            present = new Numbered(address);
            table.add(present);
            model.put(address, present);
        } else {
            table.remove(present);
        }
    }

    @Test
    void itFindsWhatIsThereAndNothingElse() {
        Random random = new Random(1);
        for (int step = 0; step < 20_000; step++) {
            addOrRemove(512L * random.nextInt(ADDRESSES));
            long asked = 512L * random.nextInt(ADDRESSES);
            assertThat(table.find(asked)).isSameAs(model.get(asked));
            assertThat(table.any()).isEqualTo(!model.isEmpty());
        }
    }

    @Test
    void whoVisitsMayRemove() {
        for (int i = 1; i <= ADDRESSES; i++) {
            addOrRemove(512L * i);
        }
        Map<Long, Numbered> visited = new HashMap<>();
        table.forEach(each -> {
            visited.put(each.address, each);
            table.remove(each);
        });
        assertThat(visited).isEqualTo(model);
        assertThat(table.any()).isFalse();
        assertThat(table.find(512)).isNull();
    }

    @Test
    void aClearedTableIsEmptyAndServesAgain() {
        for (int i = 0; i < ADDRESSES; i++) {
            addOrRemove(512L * i);
        }
        table.clear();
        assertThat(table.any()).isFalse();
        assertThat(table.find(0)).isNull();
        Numbered added = new Numbered(0);
        table.add(added);
        assertThat(table.find(0)).isSameAs(added);
    }
}
