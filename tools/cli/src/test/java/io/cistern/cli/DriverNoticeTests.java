package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Which GPU the program takes, and that it says so where it is a simulated one.
final class DriverNoticeTests {
    private static final List<String> PROPERTIES =
            List.of("cistern.driver", "cistern.cuda.library", "cistern.alocator");

    @TempDir
    private Path folder;

    private final List<String> before =
            PROPERTIES.stream().map(key -> System.getProperty(key, "")).toList();
    private String trace = "";

    @BeforeEach
    void writeTrace() throws Exception {
        trace = ProgramRun.trace(folder, "tiny.csv", "a,0,1000,0").toString();
        System.setProperty("cistern.driver", "simulated");
    }

    @AfterEach
    void restore() {
        for (int i = 0; i < before.size(); i++) {
            System.setProperty(PROPERTIES.get(i), before.get(i)); // blank counts as not set
        }
    }

    @Test
    void aReplayOnASimulatedGpuSaysSoAndWhy() {
        assertThat(replay("--device=simulated").err().strip()).isEqualTo(ProgramRun.SIMULATED_NOTICE);
        assertThat(replay("--device=auto").err().strip())
                .isEqualTo("cistern: on a simulated GPU (property cistern.driver)");
    }

    @Test
    void aLibraryThatWasNamedAndIsNotThereEndsWithTwo() {
        System.setProperty("cistern.driver", "auto");
        System.setProperty("cistern.cuda.library", "/none/libcuda.so");

        ProgramRun run = replay("--device=auto");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().lines())
                .singleElement()
                .asString()
                .contains("property cistern.cuda.library: the library /none/libcuda.so can't be loaded");
        assertThat(replay("--device=simulated").exitCode()).isZero();
    }

    @Test
    void aDriverThatThereIsNotEndsWithTwo() {
        System.setProperty("cistern.driver", "cudda");

        assertThat(replay("--device=auto").exitCode()).isEqualTo(2);
        assertThat(replay("--device=auto").err())
                .startsWith("cistern: property cistern.driver: there is no driver 'cudda'");
    }

    @Test
    void aStrictDoctorEndsWithFiveWhereThereAreProblems() {
        assertThat(ProgramRun.inProcess("doctor", "--strict").exitCode()).isZero();

        System.setProperty("cistern.driver", "cudda");
        System.setProperty("cistern.alocator", "async");

        ProgramRun doctor = ProgramRun.inProcess("doctor");
        assertThat(doctor.exitCode()).isZero();
        assertThat(doctor.wholeLines())
                .containsPattern("Problems\\n.* no setting 'cistern.alocator'.*\\n.* no driver 'cudda'");
        assertThat(ProgramRun.inProcess("doctor", "--strict").exitCode()).isEqualTo(5);
    }

    private ProgramRun replay(String device) {
        return ProgramRun.inProcess("replay", trace, device, "--allocator=direct", "--repeat=1");
    }
}
