package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cli.common.ByteSize;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.options.SpecOptions;
import io.cistern.jvm.ByteSpellings;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every setting and every option of bytes of every provider reads the same spellings as the same number, and refuses
/// the same texts where they are written, with a message that says which, what, and what is legal.
final class ByteValueTests {
    /// Texts of an option's legal values that speak of bytes.
    private static final String OF_BYTES = "(?s).*(\\bbytes\\b|[KMGT]iB\\b).*";

    /// Options that take a number of bytes among other values.
    private static final List<String> OTHER_TYPES = List.of("release_threshold");

    private static final Catalog CATALOG = Catalog.discover(List.of(), List.of());

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(ByteSpellings.DEVICE_BYTES).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(CATALOG).open();

    /// An option of a provider.
    private record Place(Catalog.Entry entry, SpecOption<?> option) {
        String spec(String value) {
            String around = declared(entry).stream()
                    .filter(each ->
                            each.key().equals("upstream") && each.usual().equals("required"))
                    .map(_ -> ",upstream=direct")
                    .findFirst()
                    .orElse("");
            String beside = option.key().equals("initial_size") ? ",release_threshold=keep_all" : "";
            return entry.name() + ":" + option.key() + "=\"" + value + "\"" + around + beside;
        }

        @Override
        public String toString() {
            return entry.kind() + " " + entry.name() + ":" + option.key();
        }
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    static List<Place> options() {
        List<Place> places = new ArrayList<>();
        for (Catalog.Entry entry : CATALOG.entries()) {
            declared(entry).forEach(option -> places.add(new Place(entry, option)));
        }
        return places;
    }

    private static List<? extends SpecOption<?>> declared(Catalog.Entry entry) {
        return entry.kind() == Catalog.Kind.SOURCE
                ? CATALOG.source(entry.name()).options()
                : CATALOG.allocator(entry.name()).options();
    }

    static Stream<Place> optionsOfBytes() {
        return options().stream().filter(ByteValueTests::isOfBytes);
    }

    /// Asks the option itself: it reads 2 MiB as that number.
    private static boolean isOfBytes(Place place) {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            return read(place, "2MiB", memory).equals(Optional.of(ByteSpellings.BYTES));
        } catch (ConfigurationException otherType) {
            return false;
        }
    }

    private static Optional<?> read(Place place, String value, DeviceMemory memory) {
        return place.option().read(new SpecOptions(AllocatorSpec.parse(place.spec(value)), memory.environment()));
    }

    @Test
    void anOptionThatSpeaksOfBytesIsOne() {
        assertThat(options())
                .filteredOn(place -> place.option().legal().matches(OF_BYTES))
                .filteredOn(place -> !OTHER_TYPES.contains(place.option().key()))
                .allMatch(ByteValueTests::isOfBytes);
        assertThat(optionsOfBytes())
                .hasSizeGreaterThan(10)
                .extracting(place -> place.option().key())
                .doesNotContainAnyElementsOf(OTHER_TYPES)
                .contains("max_bytes", "max_size", "bytes", "alignment", "threshold");
    }

    @ParameterizedTest
    @MethodSource("optionsOfBytes")
    void anOptionReadsEverySpelling(Place place) {
        for (String spelling : ByteSpellings.all()) {
            assertThat(read(place, spelling, memory))
                    .as("%s=%s", place, spelling)
                    .isEqualTo(Optional.of(ByteSpellings.BYTES));
            try (MemoryPool pool = memory.pools().open(place.spec(spelling))) {
                assertThat(pool.spec().options()).as("%s=%s", place, spelling).isNotEmpty();
            }
        }
    }

    @ParameterizedTest
    @MethodSource("optionsOfBytes")
    void anOptionRefusesTheSameWhenItIsOpened(Place place) {
        for (String wrong : ByteSpellings.WRONG) {
            assertThatThrownBy(() -> memory.pools().open(place.spec(wrong)))
                    .as("%s=%s", place, wrong)
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContainingAll("'" + place.option().key() + "'", "'" + wrong + "'", "; write ");
        }
    }

    @Test
    void devicesOfDifferentSizesHaveNoShareInCommon() {
        String what = "'50%' is a share of a device";
        try (SimulatedGpu none = SimulatedGpu.builder().devices(0).build();
                DeviceMemory without =
                        DeviceMemory.builder(none).catalog(CATALOG).open()) {
            assertThatThrownBy(() -> without.open("caching:max_bytes=50%"))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContainingAll("'max_bytes'", what, "there is no device");
        }
    }

    private static List<Setting> settingsOfBytes(boolean ofDevice) {
        return Arrays.stream(Setting.values())
                .filter(setting -> switch (setting) {
                    case LIMIT, DEVICE_LIMIT -> ofDevice;
                    case SIMULATED_CAPACITY -> !ofDevice;
                    case CONFIG,
                            ALLOCATOR,
                            DEVICE_ALLOCATOR,
                            DEFINE,
                            PLUGINS,
                            PLUGINS_ALLOWED,
                            LEAKS,
                            CHECK,
                            HAZARDS,
                            OBSERVE,
                            SCOPES_REPORT,
                            COPIES_REPORT,
                            COPIES_DIRECT,
                            DRIVER,
                            CUDA_LIBRARY,
                            NVRTC_LIBRARY,
                            NCCL_LIBRARY,
                            ONNXRUNTIME_LIBRARY,
                            NVTX_LIBRARY,
                            SIMULATED_DEVICES -> {
                        assertThat(setting.legal()).doesNotContain("bytes");
                        yield false;
                    }
                })
                .toList();
    }

    private static String key(Setting setting) {
        return setting.key().replace(".N.", ".0.");
    }

    private static Settings.Value value(Setting setting, String text) {
        return new Settings(Map.of(key(setting), text), Map.of()).all().getFirst();
    }

    /// The bytes that a program gets which starts with a setting.
    private static long effect(Setting setting, String text) {
        System.setProperty(key(setting), text);
        try (SimulatedGpu gpu = setting == Setting.SIMULATED_CAPACITY
                        ? SimulatedGpu.builder().build()
                        : SimulatedGpu.builder()
                                .capacityBytes(ByteSpellings.DEVICE_BYTES)
                                .build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            return setting == Setting.SIMULATED_CAPACITY
                    ? memory.environment().totalBytes(0)
                    : memory.limits().device(0).byteSize();
        } finally {
            System.clearProperty(key(setting));
        }
    }

    @Test
    void aSettingReadsEverySpelling() {
        for (Setting setting : settingsOfBytes(true)) {
            for (String spelling : ByteSpellings.all()) {
                value(setting, spelling).check();
                assertThat(effect(setting, spelling))
                        .as("%s=%s", setting.key(), spelling)
                        .isEqualTo(ByteSpellings.BYTES);
            }
        }
        for (Setting setting : settingsOfBytes(false)) {
            for (String spelling : ByteSpellings.NUMBERS) {
                value(setting, spelling).check();
                assertThat(effect(setting, spelling))
                        .as("%s=%s", setting.key(), spelling)
                        .isEqualTo(ByteSpellings.BYTES);
            }
        }
    }

    @Test
    void aSettingRefusesTheSameWhenItIsCheckedAndWhenAProgramStarts() {
        for (Setting setting : Setting.values()) {
            boolean ofDevice = settingsOfBytes(true).contains(setting);
            if (ofDevice || settingsOfBytes(false).contains(setting)) {
                List<String> wrong = new ArrayList<>(ByteSpellings.WRONG);
                wrong.addAll(ofDevice ? List.of("0", "0%") : ByteSpellings.SHARES);
                wrong.forEach(text -> assertRefused(setting, text));
            }
        }
    }

    private static void assertRefused(Setting setting, String text) {
        Throwable checked = catchThrowable(() -> value(setting, text).check());
        Throwable started = catchThrowable(() -> effect(setting, text));
        assertThat(checked).as("%s=%s", setting.key(), text).isInstanceOf(IllegalSettingException.class);
        assertThat(started).as("%s=%s", setting.key(), text).hasMessage(checked.getMessage());
        assertThat(checked.getMessage())
                .contains(key(setting), "'" + text + "'")
                .containsAnyOf("; write ", "from 1");
    }

    @Test
    void theCommandLineReadsTheSameNumbers() {
        for (String spelling : ByteSpellings.NUMBERS) {
            assertThat(ByteSize.parse(spelling)).as(spelling).isEqualTo(ByteSpellings.BYTES);
        }
        for (String wrong : List.of("0.5", "50%", "2MB", "much")) {
            assertThatThrownBy(() -> ByteSize.parse(wrong)).hasMessageContaining("; write ");
        }
    }
}
