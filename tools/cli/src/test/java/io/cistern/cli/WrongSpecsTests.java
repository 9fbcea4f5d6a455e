package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.cli.common.Plugins;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What is wrong with the specs of settings is told together with all other wrong settings.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
final class WrongSpecsTests {
    private static final Catalog CATALOG = Plugins.catalog();

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final List<String> set = new ArrayList<>();

    private void set(String key, String value) {
        System.setProperty(key, value);
        set.add(key);
    }

    private DeviceMemory open() {
        return DeviceMemory.builder(gpu)
                .catalog(Catalog.discover(List.of(), List.of()))
                .open();
    }

    @AfterEach
    void clear() {
        set.forEach(System::clearProperty);
        gpu.close();
    }

    @Test
    void aFailureOfAnotherSettingTellsThem() {
        set("cistern.limit", "8GB");
        set("cistern.allocator", "async:max_size=0,location=moon");
        set("cistern.device.1.allocator", "caching:source=vmm,alignment=3,handle=door");
        set("cistern.define.mine", "symmetric:bytes=1,lagest=1MiB");
        assertThatThrownBy(this::open)
                .isInstanceOf(ConfigurationException.class)
                .satisfies(failure -> assertThat(failure.getMessage().lines())
                        .satisfiesExactly(
                                line -> assertThat(line).startsWith("property cistern.limit: '8GB' could mean"),
                                line -> assertThat(line)
                                        .startsWith(
                                                "property cistern.allocator: option 'max_size' of 'async': 0 is invalid"),
                                line -> assertThat(line)
                                        .startsWith(
                                                "property cistern.allocator: option 'location' of 'async': moon is"),
                                line -> assertThat(line)
                                        .startsWith("property cistern.device.1.allocator: option 'alignment'"),
                                line -> assertThat(line)
                                        .startsWith("property cistern.device.1.allocator: option 'handle'"),
                                line -> assertThat(line)
                                        .startsWith("property cistern.define.mine: symmetric: bytes must"),
                                line -> assertThat(line)
                                        .startsWith(
                                                "property cistern.define.mine: 'symmetric' has no option 'lagest'")));
    }

    @Test
    void aSpecThatCannotBeOpenedTellsThemOnce() {
        set("cistern.allocator", "caching:max_bytes=1,page_size=3");
        set("cistern.device.1.allocator", "limit:bytes=0,upstream=\"caching:fit=wide\"");
        try (DeviceMemory memory = open()) {
            assertThatThrownBy(() -> memory.current(0))
                    .isInstanceOf(ConfigurationException.class)
                    .satisfies(failure -> assertThat(failure.getMessage().lines())
                            .satisfiesExactlyInAnyOrder(
                                    line -> assertThat(line)
                                            .startsWith("property cistern.allocator: option 'max_bytes' of 'caching'"),
                                    line -> assertThat(line)
                                            .startsWith("property cistern.allocator: option 'page_size' of 'caching'"),
                                    line -> assertThat(line)
                                            .startsWith("property cistern.device.1.allocator: limit: bytes must be"),
                                    line -> assertThat(line)
                                            .startsWith("property cistern.device.1.allocator: option 'fit' of")));
        }
    }

    static List<String> specs() {
        return EverySpec.list();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void aSpecThatOpensHasNoProblems(String spec) {
        assertThat(ModuleSupport.problemsOfSpec(spec, CATALOG)).isEmpty();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void whatAnOptionRefusesIsFoundWithoutOpening(String spec) {
        List<String> missed = new ArrayList<>();
        try (DeviceMemory memory =
                DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            for (String key : keys(spec)) {
                for (String value : List.of("nonsense", "0", "-1", "3")) {
                    String given = spec + (spec.indexOf(':') < 0 ? ':' : ',') + key + '=' + value;
                    if (!opens(memory, given)
                            && ModuleSupport.problemsOfSpec(given, CATALOG).isEmpty()) {
                        missed.add(given);
                    }
                }
            }
        }
        assertThat(missed).isEmpty();
    }

    /// Returns the keys of an allocator and of its source that the spec does not give itself.
    private static List<String> keys(String spec) {
        List<String> keys = new ArrayList<>();
        List<String> words = List.of(spec.split("[:,=\"]"));
        for (Catalog.Entry entry : CATALOG.entries()) {
            if (entry.kind() == Catalog.Kind.ALLOCATOR && entry.name().equals(words.getFirst())) {
                CATALOG.allocator(entry.name()).options().forEach(option -> keys.add(option.key()));
            } else if (entry.kind() == Catalog.Kind.SOURCE
                    && words.contains(entry.name())
                    && !spec.contains("upstream")) {
                CATALOG.source(entry.name()).options().forEach(option -> keys.add(option.key()));
            }
        }
        keys.removeIf(key -> spec.contains(key + "="));
        return keys;
    }

    /// Returns whether it opens, or is refused for a reason that only its opening shows: two options together, or
    /// the size of a device.
    private static boolean opens(DeviceMemory memory, String spec) {
        try {
            memory.open(spec).close();
            return true;
        } catch (ConfigurationException refused) {
            String why = String.valueOf(refused.getMessage());
            return why.contains("contradicts") || why.contains(" bytes of device ");
        }
    }
}
