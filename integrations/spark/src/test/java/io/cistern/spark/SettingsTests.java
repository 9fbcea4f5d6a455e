package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.settings.Setting;
import io.cistern.errors.ConfigurationException;
import io.cistern.jvm.ByteSpellings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Spark's configuration is Cistern's.
final class SettingsTests {
    /// For host memory, and for a device that is made: no shares.
    private static final List<String> HOST = List.of("spark.cistern.pinned", "spark.cistern.simulated.capacity");

    @Test
    void aSettingOfCisternHasSparkInFront() {
        SparkConf conf = new SparkConf(false).set("spark.cistern.limit", "8MiB").set("spark.cistern.pinned", "1m");
        assertThat(SparkSettings.of(conf)).containsExactly(Map.entry("cistern.limit", "8MiB"));
    }

    @Test
    void settingsAreAppliedAndTakenBack() {
        SparkConf conf = new SparkConf(false).set("spark.cistern.limit", "8MiB");
        try (SparkSettings applied = SparkSettings.apply(conf, Map.of("cistern.leaks", "sites"))) {
            assertThat(applied).isNotNull();
            assertThat(System.getProperty("cistern.limit")).isEqualTo("8MiB");
            assertThat(System.getProperty("cistern.leaks")).isEqualTo("sites");
        }
        assertThat(System.getProperty("cistern.limit")).isNull();
        assertThat(System.getProperty("cistern.leaks")).isNull();
    }

    @Test
    void aDefaultGivesWayToWhatIsSet() {
        SparkConf conf = new SparkConf(false).set("spark.cistern.leaks", "all");
        try (SparkSettings applied = SparkSettings.apply(conf, Map.of("cistern.leaks", "sites"))) {
            assertThat(applied).isNotNull();
            assertThat(System.getProperty("cistern.leaks")).isEqualTo("all");
        }
    }

    @Test
    void anUnknownSettingIsRefusedWithTheNearest() {
        SparkConf conf = new SparkConf(false).set("spark.cistern.limt", "8MiB");
        assertThatThrownBy(() -> SparkSettings.check(conf))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("there is no setting 'cistern.limt'; known, nearest first: cistern.limit");
        assertThat(System.getProperty("cistern.limt")).isNull();
    }

    @Test
    void thePageHasThemAll() throws IOException {
        Path page = Path.of(System.getProperty("basedir", ".")).resolve("../../docs/spark.md");
        assertThat(Files.readAllLines(page).stream().filter(line -> line.startsWith("| `spark.cistern.")))
                .containsExactlyElementsOf(Arrays.stream(PluginSetting.values())
                        .map(setting -> "| `" + setting.key() + "` | " + setting.legal() + " | " + setting.otherwise()
                                + " | " + setting.meaning() + " |")
                        .toList());
    }

    @Test
    void whatSparkAloneNeedsIsCheckedToo() {
        for (PluginSetting setting : List.of(PluginSetting.TASK_LIMIT, PluginSetting.FIGURES_INTERVAL)) {
            SparkConf conf = new SparkConf(false).set(setting.key(), "much");
            assertThatThrownBy(() -> SparkSettings.check(conf))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContainingAll(
                            setting.key(), "'much'", "valid: " + setting.legal().replace("`", ""));
        }
    }

    /// The settings of bytes, and an option of an allocator for all of them.
    private static Stream<String> keysOfBytes() {
        return Stream.of(
                "spark.cistern.limit",
                "spark.cistern.device.0.limit",
                "spark.cistern.simulated.capacity",
                "spark.cistern.task.limit",
                "spark.cistern.pinned",
                "spark.cistern.allocator");
    }

    private static SparkConf conf(String key, String value) {
        SparkConf conf = new SparkConf(false).set("spark.cistern.simulated.capacity", "4g");
        return conf.set(key, key.endsWith("allocator") ? "caching:max_bytes=\"" + value + "\"" : value);
    }

    @ParameterizedTest
    @MethodSource("keysOfBytes")
    void theDriverTakesEverySpelling(String key) {
        assertThat(ByteSpellings.NUMBERS)
                .allSatisfy(spelling -> assertThatCode(() -> SparkSettings.check(conf(key, spelling)))
                        .doesNotThrowAnyException());
        if (!HOST.contains(key)) {
            assertThat(ByteSpellings.SHARES)
                    .allSatisfy(share -> assertThatCode(() -> SparkSettings.check(conf(key, share)))
                            .doesNotThrowAnyException());
        }
    }

    @ParameterizedTest
    @MethodSource("keysOfBytes")
    void theDriverRefusesWhatAnExecutorWould(String key) {
        List<String> wrong = new ArrayList<>(ByteSpellings.WRONG);
        wrong.add("0");
        wrong.addAll(HOST.contains(key) ? ByteSpellings.SHARES : List.of());
        for (String value : wrong) {
            assertThatThrownBy(() -> SparkSettings.check(conf(key, value)))
                    .as("%s=%s", key, value)
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContaining(key.substring(key.indexOf("cistern")))
                    .message()
                    .containsAnyOf("'" + value + "'", value + " is invalid");
        }
        assertThat(System.getProperty("cistern.limit")).isNull();
    }

    /// Each key names a setting that exists, and no setting of bytes is missing.
    @Test
    void allSettingsOfBytesAreTried() {
        assertThat(Stream.concat(
                        Arrays.stream(PluginSetting.values())
                                .filter(setting -> setting.legal().contains("bytes"))
                                .map(PluginSetting::key),
                        Arrays.stream(Setting.values())
                                .filter(setting -> setting.legal().contains("bytes"))
                                .map(setting -> "spark." + setting.key().replace(".N.", ".0."))))
                .isSubsetOf(keysOfBytes().toList());
    }

    @Test
    void theDriverRefusesPinnedMemoryForWhichExecutorsHaveNoRoom() {
        assertThatThrownBy(() -> SparkSettings.check(new SparkConf(false).set("spark.cistern.pinned", "8g")))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContainingAll("spark.cistern.pinned is 8589934592 bytes", "spark.executor.memoryOverhead");
    }

    @Test
    void theDriverOpensTheSpecsThatExecutorsWould() {
        for (String spec : List.of("cashing", "caching:max_byte=8g", "async:max_size=1g,initial_size=2g", "caching:")) {
            assertThatThrownBy(() -> SparkSettings.check(new SparkConf(false).set("spark.cistern.allocator", spec)))
                    .as(spec)
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContaining("property cistern.allocator: ");
        }
        SparkSettings.check(new SparkConf(false).set("spark.cistern.allocator", "nccl"));
        SparkSettings.check(new SparkConf(false).set("spark.cistern.allocator", "library:path=/of/executors.so"));
    }

    @Test
    void anApplicationWithARefusedSettingDoesNotStart() {
        assertThatThrownBy(() -> new LocalSpark(Map.of("spark.cistern.allocator", "cashing")))
                .hasStackTraceContaining("cashing")
                .hasStackTraceContaining("caching");
        try (LocalSpark next = new LocalSpark()) {
            assertThat(next.context().parallelize(List.of(1, 2), 2).count()).isEqualTo(2);
        }
    }

    @Test
    void aTaskHasItsShareOfTheDevice() {
        SparkConf conf = new SparkConf(false).set("spark.task.resource.gpu.amount", "0.25");
        assertThat(TaskLimit.of(conf, 1 << 20).byteSize()).hasValue(1 << 18);
        assertThat(TaskLimit.of(conf.set("spark.cistern.task.limit", "none"), 1 << 20)
                        .byteSize())
                .isEmpty();
        assertThat(TaskLimit.of(conf.set("spark.cistern.task.limit", "2k"), 1 << 20)
                        .byteSize())
                .hasValue(2048);
        assertThat(TaskLimit.of(new SparkConf(false), 1 << 20).byteSize()).isEmpty();
    }
}
