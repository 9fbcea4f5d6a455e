package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// A configuration, with plug-ins, that changes while allocators are in use.
class CatalogReloadTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(3).build();
    private final ArrayAllocatorProvider one = new ArrayAllocatorProvider("one");
    private final ArrayAllocatorProvider two = new ArrayAllocatorProvider("two");
    private final String[] chosen = {"one", "two", "one"};
    private int version;
    private String reason = "file settings";
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(new Found()).open();

    /// What a search finds at the moment it is made.
    private final class Found implements Catalog {
        private final Catalog all = Catalog.of(List.of(one, two), List.of(new DriverSource.Linear()));
        private final List<String> choices = List.of(chosen);
        private final String because = reason;
        private final Entry plugIn =
                new Entry(Kind.ALLOCATOR, "one", "one.jar, version " + version, 0, Optional.empty());

        @Override
        public AllocatorProvider allocator(String name) {
            return all.allocator(name);
        }

        @Override
        public SegmentSourceProvider source(String name) {
            return all.source(name);
        }

        @Override
        public List<Entry> entries() {
            return List.of(plugIn);
        }

        @Override
        public Choice choose(DeviceEnvironment environment) {
            return choose(environment, 0);
        }

        @Override
        public Choice choose(DeviceEnvironment environment, int device) {
            return new Choice(AllocatorSpec.parse(choices.get(device)), because);
        }

        @Override
        public Catalog refreshed() {
            return new Found();
        }
    }

    @AfterEach
    void close() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void nothingIsExchangedIfNothingChanged() {
        Allocator first = memory.current(0);
        Catalog before = memory.currents().catalog();
        assertThat(memory.currents().reload()).isEmpty();
        assertThat(memory.current(0)).isSameAs(first);
        assertThat(one.log).containsExactly("one opened");
        assertThat(memory.currents().catalog()).as("the last search").isNotSameAs(before);
    }

    @Test
    void onlyADeviceWithAnotherChoiceGetsAnotherAllocator() {
        Allocator first = memory.current(0);
        Allocator second = memory.current(1);
        chosen[1] = "one";
        chosen[2] = "two"; // nobody has asked for it
        assertThat(memory.currents().reload()).containsExactly("device 1: two -> one");
        assertThat(memory.current(0)).isSameAs(first);
        assertThat(memory.current(1)).isSameAs(first);
        assertThat(second.isClosed()).isTrue();
        assertThat(memory.current(2)).isNotSameAs(first);
        assertThat(memory.current(2).name()).isEqualTo("two");
    }

    @Test
    void aChangedPlugInIsOpenedAgain() {
        Allocator first = memory.current(0);
        Allocator second = memory.current(1);
        version++;
        assertThat(memory.currents().reload()).containsExactly("device 0: one -> one", "device 1: two -> two");
        assertThat(memory.current(0)).isNotSameAs(first);
        assertThat(memory.setCurrent("one")).as("its spec means the new one").isNotSameAs(first);
        assertThat(first.isClosed()).isTrue();
        assertThat(second.isClosed()).isTrue();
    }

    @Test
    void whatTheProgramChoseStays() {
        Allocator first = memory.current(0);
        Allocator own = memory.open("two");
        memory.currents().set(1, own);
        chosen[0] = "two";
        chosen[1] = "one";
        assertThat(memory.currents().reload()).containsExactly("device 0: one -> two");
        assertThat(memory.current(1)).isSameAs(own);
        assertThat(memory.currents().isCurrent(1, own)).isTrue();
        assertThat(memory.currents().isCurrent(1, first)).isFalse();
    }

    @Test
    void aChoiceThatCannotBeOpenedChangesNothing() {
        Allocator first = memory.current(0);
        Allocator second = memory.current(1);
        Catalog before = memory.currents().catalog();
        version++;
        two.failure = new IllegalStateException("no room");
        assertThatThrownBy(() -> memory.currents().reload())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("file settings: two can't be opened: ")
                .hasMessageContaining("no room");
        assertThat(memory.currents().catalog()).isSameAs(before);
        assertThat(memory.current(0)).isSameAs(first);
        assertThat(memory.current(1)).isSameAs(second);
        assertThat(memory.allocators()).as("what it opened meanwhile is closed").containsExactly(first, second);
        assertThat(memory.setCurrent("one")).as("its spec means what it meant").isSameAs(first);
        two.failure = null;
        assertThat(memory.currents().reload()).isEmpty();
        assertThat(memory.setCurrent("one")).as("of the changed plug-in").isNotSameAs(first);
    }

    /// A setting is named, since its author has to change it; a priority is no setting.
    @Test
    void aFailureNamesTheSettingThatChose() {
        chosen[0] = "nobody";
        reason = "file settings";
        memory.current(1);
        memory.currents().reload();
        assertThatThrownBy(() -> memory.current(0))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageStartingWith("file settings: no allocator is named 'nobody'");
        reason = Catalog.Choice.HIGHEST_PRIORITY;
        memory.currents().reload();
        assertThatThrownBy(() -> memory.current(0))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageStartingWith("no allocator is named 'nobody'");
    }
}
