package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.ConfigurationException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/// Spark's configuration is Cistern's.
final class SettingsTests {
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
                    .hasMessageContaining(setting.key() + " is 'much'; legal: " + setting.legal());
        }
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
