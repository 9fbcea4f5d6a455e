package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What a page may do under each reason to stay.
final class PageTests {
    private static Page page(Set<Page.Pin> pins) {
        Page page = new Page(1, 2 << 20, mock(PageArena.class), 1 << 30);
        pins.forEach(page::pin);
        return page;
    }

    @ParameterizedTest
    @CsvSource({
        "'', true, true, true",
        "CAPTURED, false, false, true",
        "ASLEEP, true, false, false",
        "CHANGING, false, false, false",
        "ON_HOST, true, true, false",
        "ASLEEP CAPTURED, false, false, false",
        "ASLEEP CHANGING, false, false, false",
        "ON_HOST CHANGING, false, false, false"
    })
    void aReasonSaysWhatAPageMayDo(String names, boolean mayGo, boolean mayBeReplaced, boolean maySleep) {
        Set<Page.Pin> pins = EnumSet.noneOf(Page.Pin.class);
        for (String name : names.isEmpty() ? new String[0] : names.split(" ")) {
            pins.add(Page.Pin.valueOf(name));
        }
        Page page = page(pins);
        assertThat(page.mayGo()).isEqualTo(mayGo);
        assertThat(page.mayBeReplaced()).isEqualTo(mayBeReplaced);
        assertThat(page.maySleep()).isEqualTo(maySleep);
        assertThat(page.isPinned()).isEqualTo(!pins.isEmpty());
        assertThat(page.isAsleep()).isEqualTo(pins.contains(Page.Pin.ASLEEP));
        assertThat(page.isOnHost()).isEqualTo(pins.contains(Page.Pin.ON_HOST));
        for (Page.Pin pin : Page.Pin.values()) {
            assertThat(page.isPinned(pin)).isEqualTo(pins.contains(pin));
            page.unpin(pin);
        }
        assertThat(page.isPinned()).isFalse();
    }

    @Test
    void aPageWithSeveralPlacesDoesNotSleep() {
        Page page = page(Set.of());
        Mapping other = new Mapping(page, mock(PageArena.class), 1 << 20);
        assertThat(page.add(other)).isTrue();
        assertThat(page.add(other)).as("twice").isFalse();
        assertThat(page.maySleep()).isFalse();
    }
}
