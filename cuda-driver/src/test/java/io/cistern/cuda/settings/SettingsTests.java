package io.cistern.cuda.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SettingsTests {
    @TempDir
    private Path folder;

    private final Map<String, String> properties = new HashMap<>();
    private final Map<String, String> variables = new HashMap<>();

    @Test
    void propertyComesBeforeVariableBeforeFile() throws IOException {
        Path file = file("cistern.allocator=file\ncistern.leaks=all\ncistern.check=checked\n");
        variables.put("CISTERN_ALLOCATOR", "variable");
        variables.put("CISTERN_LEAKS", "sites");
        properties.put("cistern.allocator", "property");

        assertThat(source(Setting.ALLOCATOR)).contains("property from property cistern.allocator");
        assertThat(source(Setting.LEAKS)).contains("sites from environment variable CISTERN_LEAKS");
        assertThat(source(Setting.CHECK)).contains("checked from cistern.check in " + file);
        assertThat(settings().all())
                .extracting(Settings.Value::key)
                .containsExactly("cistern.config", "cistern.allocator", "cistern.leaks", "cistern.check");
    }

    @Test
    void aBlankValueCountsAsNotSet() {
        properties.put("cistern.allocator", " ");
        variables.put("CISTERN_ALLOCATOR", "async");

        assertThat(source(Setting.ALLOCATOR)).contains("async from environment variable CISTERN_ALLOCATOR");
    }

    @Test
    void whatIsSetForADeviceGivesWayToAStrongerOrigin() throws IOException {
        file("cistern.device.1.allocator=for-one\ncistern.allocator=for-all\n");
        assertThat(ofDevice(0)).contains("for-all");
        assertThat(ofDevice(1)).contains("for-one");

        variables.put("CISTERN_DEVICE_0_ALLOCATOR", "for-zero");
        assertThat(ofDevice(0)).contains("for-zero");
        assertThat(ofDevice(1)).contains("for-one");

        properties.put("cistern.allocator", "all");
        assertThat(ofDevice(0)).contains("all");
        assertThat(ofDevice(1)).contains("all");
    }

    @Test
    void namesAreDefinedByEachOrigin() throws IOException {
        file("cistern.define.my-pool=async\n");
        variables.put("CISTERN_DEFINE_ACME_2", "direct");

        assertThat(settings().all())
                .filteredOn(value -> value.setting() == Setting.DEFINE)
                .extracting(Settings.Value::part, Settings.Value::text)
                .containsExactly(
                        org.assertj.core.groups.Tuple.tuple("acme_2", "direct"),
                        org.assertj.core.groups.Tuple.tuple("my-pool", "async"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "CISTERN_SERVICE_HOST",
                "CISTERN_SERVICE_PORT",
                "CISTERN_SERVICE_PORT_HTTP",
                "CISTERN_SERVICE_PORT_HTTP_METRICS",
                "CISTERN_PORT",
                "CISTERN_PORT_8080_TCP",
                "CISTERN_PORT_8080_TCP_PROTO",
                "CISTERN_PORT_8080_TCP_PORT",
                "CISTERN_PORT_8080_TCP_ADDR",
                "CISTERN_PORT_53_UDP_ADDR",
                "CISTERN_SCORING_SERVICE_HOST",
                "CISTERN_SCORING_PORT_8080_TCP"
            })
    void whatKubernetesSetsForAServiceIsIgnored(String name) {
        Settings settings = new Settings(Map.of(), Map.of(name, "10.0.0.1"));
        assertThat(settings.unknown()).isEmpty();
        assertThat(settings.all()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "CISTERN_SERVICE",
                "CISTERN_SERVICE_HOSTS",
                "CISTERN_PORTS",
                "CISTERN_PORT_TCP",
                "CISTERN_PORT_8080",
                "CISTERN_PORT_8080_HTTP",
                "CISTERN_PORT_8080_TCP_HOST",
                "cistern_port"
            })
    void whatOnlyLooksLikeAServiceIsTold(String name) {
        assertThat(new Settings(Map.of(), Map.of(name, "1")).unknown())
                .extracting(Settings.Unknown::key)
                .containsExactly(name);
    }

    @Test
    void aNameMayEndLikeAService() {
        Settings settings = new Settings(Map.of(), Map.of("CISTERN_DEFINE_OF_PORT", "direct"));
        assertThat(settings.all()).extracting(Settings.Value::part).containsExactly("of_port");
    }

    @Test
    void whatIsNoSettingIsTold() throws IOException {
        Path file = file("cistern.alocator=async\ncistern.device.x.allocator=async\n");
        properties.put("cistern.leak", "all");
        properties.put("other.key", "mine");
        properties.put("cistern.testkit.seed", "1");
        variables.put("CISTERN_LEAKZ", "all");
        variables.put("CISTERN_JAVA_OPTS", "-Xmx1g");
        variables.put("CISTERN_METRICS_SLOWALLOCATIONS", "1ms");
        properties.put("cistern.metrics.slow-allocations", "1ms");

        assertThat(settings().unknown())
                .extracting(Settings.Unknown::source)
                .containsExactlyInAnyOrder(
                        "property cistern.leak",
                        "environment variable CISTERN_LEAKZ",
                        "cistern.alocator in " + file,
                        "cistern.device.x.allocator in " + file);
    }

    @Test
    void aFileThatCannotBeUsedSetsNothingAndIsTold() throws IOException {
        properties.put("cistern.config", folder.resolve("none").toString());
        assertThat(settings().problems())
                .singleElement()
                .asString()
                .startsWith("property cistern.config: " + folder.resolve("none") + " can't be read: ");

        Path file = file("cistern.allocator=async\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
        assertThat(settings().problems())
                .containsExactly("property cistern.config: " + file + " is writable by everyone; chmod go-w it");
        assertThat(settings().get(Setting.ALLOCATOR)).isEmpty();

        file("# comment \\u00zz\ncistern.allocator=\\u00zz\ncistern.leaks=all\n");
        assertThat(settings().problems())
                .singleElement()
                .asString()
                .endsWith(" has an escape in line 2 that is not \\u and four digits");
        file("cistern.leaks=all\r\n\r\n# comment\r\ncistern.allocator=\\u00zz\r\n");
        assertThat(settings().problems()).singleElement().asString().contains(" has an escape in line 4 ");

        Files.write(file("cistern.allocator=async\n"), new byte[] {(byte) 0xff}, StandardOpenOption.APPEND);
        assertThat(settings().problems()).singleElement().asString().endsWith(" is not UTF-8 in line 2");
    }

    @Test
    void aFileMayBeginWithAByteOrderMark() throws IOException {
        file("\uFEFFcistern.allocator=async\r\ncistern.leaks=all\r\n");
        assertThat(settings().unknown()).isEmpty();
        assertThat(settings().all()).extracting(Settings.Value::text).endsWith("async", "all");
    }

    /// YAML reads `off` as false.
    @Test
    void falseIsOffOfALevelAlone() {
        properties.put("cistern.leaks", "false");
        properties.put("cistern.hazards", "false");
        assertThat(settings().get(Setting.LEAKS).orElseThrow().word()).isEqualTo("off");
        assertThatThrownBy(() -> settings().get(Setting.HAZARDS).orElseThrow().word())
                .hasMessage("property cistern.hazards: 'false' is not one of warning, throw, list");
    }

    @Test
    void whatIsNoFileOfSettingsIsToldAndNotWaitedFor() throws Exception {
        Path fifo = folder.resolve("fifo");
        new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor();
        properties.put("cistern.config", fifo.toString());
        assertThat(settings().problems())
                .containsExactly("property cistern.config: " + fifo + " is not a regular" + " file");

        file("#".repeat(1 << 20) + "\n");
        assertThat(settings().problems()).singleElement().asString().endsWith(" is larger than 1MiB");
    }

    @Test
    void aKeyThatComesTwiceInAFileIsTold() throws IOException {
        Path file = file("cistern.allocator=async\ncistern.allocator=direct\ncistern.config=other\n");

        assertThat(settings().problems())
                .containsExactlyInAnyOrder(
                        file + ": cistern.allocator is set twice",
                        file + ": cistern.config can't be set in the file that it names");
    }

    private Path file(String text) throws IOException {
        Path file = Files.createTempFile(folder, "cistern", ".properties");
        Files.writeString(file, text);
        properties.put("cistern.config", file.toString());
        return file;
    }

    private Settings settings() {
        return new Settings(properties, variables);
    }

    private Optional<String> source(Setting setting) {
        return settings().get(setting).map(value -> value.text() + " from " + value.source());
    }

    private Optional<String> ofDevice(int device) {
        return settings()
                .get(Setting.DEVICE_ALLOCATOR, Setting.ALLOCATOR, device)
                .map(Settings.Value::text);
    }
}
