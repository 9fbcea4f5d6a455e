package io.cistern.spi.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verifyNoInteractions;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog.Entry;
import io.cistern.spi.catalog.Catalog.Kind;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class FixedCatalogTests {
    private static final String HERE = "the program, class ";

    private final Named slow = new Named("slow", 1);
    private final Named fast = new Named("fast", 1);
    private final NamedSource linear = new NamedSource("linear", 1);

    @Test
    void theFirstIsTheChoiceWithoutAskingTheDevices() {
        DeviceEnvironment environment = mock(DeviceEnvironment.class);

        Catalog.Choice choice = Catalog.of(List.of(slow, fast), List.of()).choose(environment);

        assertThat(choice.spec().name()).isEqualTo("slow");
        assertThat(choice.reason()).isEqualTo("the first that the program gave");
        verifyNoInteractions(environment);
    }

    @Test
    void findsWhatItWasGiven() {
        Catalog catalog = Catalog.of(List.of(slow, fast), List.of(linear));

        assertThat(catalog.allocator("fast")).isSameAs(fast);
        assertThat(catalog.source("linear")).isSameAs(linear);
        assertThat(catalog.entries())
                .containsExactly(
                        new Entry(Kind.ALLOCATOR, "slow", HERE + Named.class.getName(), 7, Optional.empty()),
                        new Entry(Kind.ALLOCATOR, "fast", HERE + Named.class.getName(), 7, Optional.empty()),
                        new Entry(Kind.SOURCE, "linear", HERE + NamedSource.class.getName(), 0, Optional.empty()));
    }

    @Test
    void theJarOfAnAbsentAllocatorIsNamed() {
        assertThatThrownBy(() -> Catalog.of(List.of(slow), List.of()).allocator("caching"))
                .hasMessage("no allocator is named 'caching'; add cistern-caching-allocator, which provides it; known,"
                        + " nearest first: slow");
    }

    @Test
    void namesThatNoProgramCouldOpenAreRefused() {
        assertThatThrownBy(() -> Catalog.of(List.of(new Named("Bump", 1)), List.of()))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage(Named.class.getName()
                        + " calls itself 'Bump'; a name consists of lower-case letters, digits, '-' and '_', and"
                        + " begins with a letter or digit");
    }

    @Test
    void whereNothingWasGivenTheCureIsTold() {
        assertThatThrownBy(() -> Catalog.of(List.of(), List.of()).allocator("caching"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage("no allocator is named 'caching': the catalogue has none;"
                        + " add cistern-pluggable-loader, or pass another to"
                        + " DeviceMemory.builder(driver).catalog(…)");
    }

    @Test
    void anUnknownNameListsTheKnownOnesTheNearestFirst() {
        Catalog catalog = Catalog.of(List.of(fast, slow), List.of(linear));

        assertThatThrownBy(() -> catalog.allocator("slwo"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage("no allocator is named 'slwo'; known, nearest first: slow, fast");
        assertThatThrownBy(() -> catalog.source("slow"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage("no segment source is named 'slow'; known, nearest first: linear");
    }

    @Test
    void aSourceIsAmongTheNamesOfAllocatorsWhereCachingMakesItOne() {
        AllocatorProvider caching = new Named("caching", 1);

        assertThatThrownBy(() -> Catalog.of(List.of(caching), List.of(linear)).allocator("linaer"))
                .hasMessage("no allocator is named 'linaer'; known, nearest first: linear, caching");
    }

    @Test
    void nothingGivenLeavesNoChoice() {
        Catalog catalog = Catalog.of(List.of(), List.of());

        assertThatThrownBy(() -> catalog.choose(mock(DeviceEnvironment.class)))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage("no allocator can be current: the catalogue has none;"
                        + " add cistern-pluggable-loader, or pass another to"
                        + " DeviceMemory.builder(driver).catalog(…)");
    }

    @Test
    void aNameGivenTwiceIsRefused() {
        assertThatThrownBy(() -> Catalog.of(List.of(slow, fast, new Named("slow", 1)), List.of()))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage("two allocators are named 'slow': classes " + Named.class.getName() + " and "
                        + Named.class.getName());
    }

    @Test
    void aProviderOfANewerSpiIsRefusedWithBothVersions() {
        assertThatThrownBy(() -> Catalog.of(List.of(), List.of(new NamedSource("new", 2))))
                .isInstanceOf(ConfigurationException.class)
                .hasMessage("'new' is built for version 2 of the SPI, newer than version 1 here");
    }

    private record Named(String name, int spiVersion) implements AllocatorProvider {
        @Override
        public int priority() {
            return 7;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            throw new UnsupportedOperationException("a catalogue opens nothing");
        }
    }

    private record NamedSource(String name, int spiVersion) implements SegmentSourceProvider {
        @Override
        public SegmentSource open(AllocatorContext context) {
            throw new UnsupportedOperationException("a catalogue opens nothing");
        }
    }
}
