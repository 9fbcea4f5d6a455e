package io.cistern.internal.names;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.settings.Settings;
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
