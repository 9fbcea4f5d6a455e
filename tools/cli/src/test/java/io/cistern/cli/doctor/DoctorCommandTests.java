package io.cistern.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What `cistern doctor` tells, with or without a GPU.
final class DoctorCommandTests {
    @Test
    void tellsJavaDriverDevicesProvidersAndTheCurrentAllocator() {
        ProgramRun run = ProgramRun.inProcess("doctor", "--verbose");

        assertThat(run.exitCode()).isZero();
        assertThat(run.err()).isEmpty();
        assertThat(run.out())
                .contains(
                        "Java\n", "Driver\n", "Device 0\n", "Allocators\n", "Segment sources\n", "Current allocator\n")
                .contains(Runtime.version().toString(), "cuda", "simulated", "direct", "linear")
                .containsPattern("Current allocator\\n {2}caching: ");
    }

    @Test
    void theAnswerComesFirstAndOnOneScreen() {
        ProgramRun run = ProgramRun.inProcess("doctor");

        assertThat(run.exitCode()).isZero();
        assertThat(run.out().lines()).hasSizeLessThan(24);
        assertThat(run.out())
                .containsPattern("^(?:No p|P)roblems\\n")
                .containsPattern("Current allocator\\n {2}caching: ")
                .contains("Device 0\n", "Driver\n")
                .doesNotContain("cistern.limit", "Segment sources\n");
    }

    @Test
    void tellsOfEachSimulatedDeviceThatAProgramWouldHave() {
        System.setProperty("cistern.simulated.devices", "3");
        System.setProperty("cistern.device.2.limit", "1GiB");
        try {
            ProgramRun run = ProgramRun.inProcess("doctor", "--strict");

            assertThat(run.exitCode()).isZero();
            assertThat(run.out())
                    .contains("Device 0\n", "Device 1\n", "Device 2\n")
                    .doesNotContain("Device 3\n");
        } finally {
            System.clearProperty("cistern.simulated.devices");
            System.clearProperty("cistern.device.2.limit");
        }
    }

    @Test
    void everyNoHasAReason() {
        assertThat(ProgramRun.inProcess("doctor", "--verbose").out().lines().filter(line -> line.matches(".* no:.*")))
                .allMatch(line -> line.matches(".* no: \\S.*"));
        assertThat(ProgramRun.inProcess("doctor", "--format=json").out())
                .doesNotContain("\"available\":false,\"reason\":null", "\"available\":false,\"reason\":\"\"");
    }

    @Test
    void tellsOfTheDefaultPoolAndWhatPoolsCanDo() {
        assertThat(ProgramRun.inProcess("doctor", "--verbose").out())
                .contains("default pool           release threshold 0 B, reserved 0 B, used 0 B, current\n")
                .containsPattern("reuse\\s+allow\\s+opportunistic")
                .containsPattern("exportable\\s+as: posix\\s+file\\s+descriptor\n")
                .containsPattern("host memory pools +yes");
        assertThat(ProgramRun.inProcess("doctor", "--format=json").out())
                .contains("\"defaultPool\":{\"current\":true,", "\"releaseThreshold\":0,", "\"usedHigh\":0");
    }

    @Test
    void jsonIsOneObjectOnOneLine() {
        String out = ProgramRun.inProcess("doctor", "--format", "json").out();

        assertThat(out.lines()).hasSize(1);
        assertThat(out)
                .startsWith("{\"cistern\":")
                .contains("\"java\":{", "\"drivers\":[{", "\"devices\":[{", "\"providers\":[{", "\"current\":{");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "cistern.device.0.allocator | asink | : no allocator is named 'asink'",
                "cistern.allocator | asink | : no allocator is named 'asink'",
                "cistern.allocator | caching:bogus=1 | : ",
                "cistern.check | foo | : 'foo' is not one of off, checked, paranoid",
                "cistern.define.foo | asink | : no allocator is named 'asink'",
                "cistern.leaks | foo | : 'foo' is not one of off, sampled, sites, all",
                "cistern.observe | foo | : there is no observer 'foo'; known, nearest first: ",
                "cistern.scopes.report | maybe | : 'maybe' is not one of true, false",
                "cistern.copies.report | maybe | : 'maybe' is not one of true, false",
                "cistern.copies.direct | maybe | : 'maybe' is not one of true, false",
                "cistern.limit | foo | : 'foo' is not a number of bytes",
                "cistern.device.0.limit | x | : 'x' is not a number of bytes",
                "cistern.simulated.devices | 1000 | : '1000' is not a number from 1 to 999",
                "cistern.simulated.capacity | much | : 'much' is not a number of bytes",
                "cistern.nvtx.library | /no/such.so | : the library can't be loaded: tried /no/such.so",
                "cistern.device.5.limit | 1GiB | : there is no device 5",
                "cistern.plugins.allowed | /no/such | : '/no/such' is not a readable file"
            })
    void aValueThatCannotBeFollowedIsAProblem(String key, String value, String why) {
        System.setProperty(key, value);
        try {
            ProgramRun run = ProgramRun.inProcess("doctor", "--strict");

            assertThat(run.exitCode()).isEqualTo(5);
            assertThat(run.wholeLines().lines())
                    .filteredOn(line -> line.startsWith("  property " + key))
                    .singleElement()
                    .asString()
                    .startsWith("  property " + key + (why.startsWith(":") ? "" : " ") + why);
            assertThat(run.wholeLines()).contains("'" + value + "', which can't be used  (property " + key + ")");
        } finally {
            System.clearProperty(key);
        }
    }

    @Test
    void anAllocatorIsNotToBlameForItsDefinition() {
        System.setProperty("cistern.define.foo", "asink");
        System.setProperty("cistern.allocator", "foo");
        try {
            assertThat(ProgramRun.inProcess("doctor", "--strict").wholeLines())
                    .contains("Problems\n  property cistern.define.foo: no allocator is named 'asink'")
                    .contains("'foo', which can't be used  (property cistern.allocator)")
                    .contains("Current allocator\n  none: property cistern.define.foo: no allocator is named 'asink'")
                    .doesNotContain("property cistern.allocator: ");
        } finally {
            System.clearProperty("cistern.define.foo");
            System.clearProperty("cistern.allocator");
        }
    }

    @Test
    void theJarThatNamesAMissingClassIsTold(@TempDir Path folder) throws IOException {
        Path plugins = Files.createDirectory(
                folder.resolve("plugins"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
        Path jar = plugins.resolve("gone.jar");
        try (JarOutputStream entries = new JarOutputStream(Files.newOutputStream(jar))) {
            entries.putNextEntry(new JarEntry("META-INF/services/io.cistern.spi.AllocatorProvider"));
            entries.write("acme.Gone".getBytes(StandardCharsets.UTF_8));
        }
        Files.setPosixFilePermissions(jar, PosixFilePermissions.fromString("rw-r--r--"));
        System.setProperty("cistern.plugins", plugins.toString());
        try {
            assertThat(ProgramRun.inProcess("doctor", "--strict").wholeLines())
                    .containsPattern("acme.Gone of " + jar + ".*: fails to load: Provider acme.Gone not found");
        } finally {
            System.clearProperty("cistern.plugins");
        }
    }

    @ParameterizedTest
    @CsvSource({"cistern.driver, foo", "cistern.plugins, /no/such"})
    void aDriverOrFolderThatIsNotThereIsNotShownAsInForce(String key, String value) {
        @Nullable String before = System.getProperty(key);
        System.setProperty(key, value);
        try {
            ProgramRun run = ProgramRun.inProcess("doctor", "--strict");

            assertThat(run.exitCode()).isEqualTo(5);
            assertThat(run.wholeLines()).contains("'" + value + "', which can't be used  (property " + key + ")");
        } finally {
            if (before == null) {
                System.clearProperty(key);
            } else {
                System.setProperty(key, before);
            }
        }
    }
}
