package io.cistern.internal.names;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.settings.Settings;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// What is set and does nothing is told, with what was probably meant.
class SettingProblemsTests {
    @Test
    void aKeyInTheWrongCaseIsToldWithTheRightOne() {
        Settings settings = new Settings(Map.of("Cistern.Allocator", "async"), Map.of("cistern_allocator", "async"));

        assertThat(SettingProblems.of(settings))
                .hasSize(2)
                .anySatisfy(problem -> assertThat(problem)
                        .startsWith(
                                "property Cistern.Allocator: there is no setting 'Cistern.Allocator'; known, nearest"
                                        + " first: cistern.allocator, "))
                .anySatisfy(problem -> assertThat(problem)
                        .startsWith("environment variable cistern_allocator: there is no setting 'cistern_allocator';"
                                + " known, nearest first: CISTERN_ALLOCATOR, "));
    }

    @Test
    void aVariablesNameAsAPropertyIsToldWithTheRightOne() {
        Settings settings = new Settings(Map.of("CISTERN_LIMIT", "1GiB"), Map.of("cistern.allocator", "async"));

        assertThat(SettingProblems.of(settings))
                .hasSize(2)
                .anySatisfy(problem -> assertThat(problem)
                        .startsWith("property CISTERN_LIMIT: there is no setting 'CISTERN_LIMIT'; known, nearest first:"
                                + " cistern.limit, "))
                .anySatisfy(problem -> assertThat(problem)
                        .startsWith("environment variable cistern.allocator: there is no setting 'cistern.allocator';"
                                + " known, nearest first: CISTERN_ALLOCATOR, "));
    }

    @Test
    void whatANameMayBeIsTold() {
        assertThat(SettingProblems.of(new Settings(Map.of("cistern.define.Nest", "async"), Map.of())))
                .singleElement()
                .asString()
                .contains("there is no setting 'cistern.define.Nest'; known, nearest first: cistern.define.NAME")
                .endsWith(
                        "; NAME consists of lower-case letters, digits, '-' and '_', and begins with a letter or digit");
    }

    /// Problems are listed one a line, and sorted by line.
    @Test
    void aProblemIsOneLineWhateverAValueHolds() {
        Settings settings = new Settings(
                Map.of("cistern.leaks", "a\nb", "cistern.limit", "8g\u001b[31m", "cistern.li\rmit", "x"), Map.of());

        assertThat(SettingProblems.of(settings))
                .containsExactly(
                        "property cistern.li mit: there is no setting 'cistern.li mit'; known, nearest first:"
                                + " cistern.limit, cistern.config, cistern.leaks, …",
                        "property cistern.limit: '8g?[31m' is not a number of bytes; write it like 1048576, 64k, 8g or"
                                + " 512MiB, or as a share of the device like 0.5 or 50%",
                        "property cistern.leaks: 'a b' is not one of off, sampled, sites, all");
        assertThat(SettingProblems.all(settings, null, _ -> List.of()).lines()).hasSize(3);
    }

    @Test
    void whatIsSetForADeviceThatIsNotThereIsTold() {
        Settings settings = new Settings(
                Map.of("cistern.device.3.allocator", "async", "cistern.device.0.limit", "1GiB"),
                Map.of("CISTERN_DEVICE_1_LIMIT", "1GiB"));

        assertThat(SettingProblems.ofAbsentDevices(settings, 2))
                .containsExactly(
                        "property cistern.device.3.allocator: there is no device 3; this process sees devices 0"
                                + " to 1");
        assertThat(SettingProblems.ofAbsentDevices(settings, 1))
                .hasSize(2)
                .allMatch(problem -> problem.endsWith("; this process sees only device 0"));
        assertThat(SettingProblems.ofAbsentDevices(settings, 4)).isEmpty();
    }
}
