package io.cistern.suites.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.DriverUnderTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs two ranks in two processes, each a [RankProgram]. They find each other by an id in a file.
@Tag("two-gpus")
public class TwoProcessNccl {
    private static final int RANKS = 2;
    private static final int MAX_SECONDS = 240;

    /// The settings of this process that are passed on to the others.
    private static final List<String> PASSED_ON = List.of("cistern.testkit.driver", "cistern.nccl.library");

    /// For JUnit.
    public TwoProcessNccl() {}

    @Test
    void everyCollectiveIsRightBetweenTwoProcesses(@TempDir Path folder) throws Exception {
        try (CudaDriver driver = DriverUnderTest.open()) {
            assumeFalse(driver.simulated(), "the simulation has ranks of one process");
            assumeTrue(driver.devices().count() >= RANKS, "needs two devices, there is one");
        }
        List<Process> processes = new ArrayList<>();
        try {
            for (int rank = 0; rank < RANKS; rank++) {
                processes.add(start(folder, rank));
            }
            for (int rank = 0; rank < RANKS; rank++) {
                boolean ended = processes.get(rank).waitFor(MAX_SECONDS, TimeUnit.SECONDS);
                assertThat(Files.readString(output(folder, rank)))
                        .as("rank %d, ended: %s", rank, ended)
                        .contains("rank " + rank + " passed");
            }
        } finally {
            processes.forEach(Process::destroyForcibly);
        }
    }

    private static Process start(Path folder, int rank) throws IOException {
        List<String> line = new ArrayList<>();
        line.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        line.add("--enable-native-access=ALL-UNNAMED");
        for (String property : PASSED_ON) {
            String value = System.getProperty(property);
            if (value != null) {
                line.add("-D" + property + "=" + value);
            }
        }
        line.addAll(List.of("-cp", System.getProperty("java.class.path"), RankProgram.class.getName()));
        line.addAll(List.of(folder.resolve("nccl.id").toString(), "" + RANKS, "" + rank, "" + rank));
        return new ProcessBuilder(line)
                .redirectErrorStream(true)
                .redirectOutput(output(folder, rank).toFile())
                .start();
    }

    private static Path output(Path folder, int rank) {
        return folder.resolve("rank" + rank + ".txt");
    }
}
