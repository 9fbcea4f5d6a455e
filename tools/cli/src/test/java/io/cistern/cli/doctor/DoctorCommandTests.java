package io.cistern.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import org.junit.jupiter.api.Test;

/// What `cistern doctor` tells, with or without a GPU.
final class DoctorCommandTests {
    @Test
    void tellsJavaDriverDevicesProvidersAndTheCurrentAllocator() {
        ProgramRun run = ProgramRun.inProcess("doctor");

        assertThat(run.exitCode()).isZero();
        assertThat(run.err()).isEmpty();
        assertThat(run.out())
                .contains(
                        "Java\n", "Driver\n", "Device 0\n", "Allocators\n", "Segment sources\n", "Current allocator\n")
                .contains(Runtime.version().toString(), "cuda", "simulated", "direct", "linear")
                .containsPattern("Current allocator\\n {2}caching: ");
    }

    @Test
    void everyNoHasAReason() {
        assertThat(ProgramRun.inProcess("doctor").out().lines().filter(line -> line.matches(".* no:.*")))
                .allMatch(line -> line.matches(".* no: \\S.*"));
        assertThat(ProgramRun.inProcess("doctor", "--format=json").out())
                .doesNotContain("\"available\":false,\"reason\":null", "\"available\":false,\"reason\":\"\"");
    }

    @Test
    void tellsOfTheDefaultPoolAndWhatPoolsCanDo() {
        assertThat(ProgramRun.inProcess("doctor").out())
                .contains("default pool           release threshold 0 B, reserved 0 B, used 0 B, current\n")
                .contains("reuse allow opportunistic", "exportable as: posix file descriptor\n")
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
}
