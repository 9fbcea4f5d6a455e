package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// The check for races sees what a program does through JCuda, on a GPU.
@Tag("gpu")
class RacesOfJCudaGpuTests {
    @Test
    void plantedRacesAreFoundAndNoneIsInvented() throws Exception {
        List<String> options = List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-Dcistern.check=streams",
                "-Dcistern.hazards=list",
                "--class-path",
                System.getProperty("java.class.path"));
        List<String> lines = new JavaProgram(RacesOfJCuda.class.getName(), options).run();
        assertThat(lines)
                .contains(
                        "copy-behind-event races 0 first 1 last 1",
                        "kernel-behind-event races 0 first 2 last 2",
                        "two-readers races 0 first 3 last 3",
                        "two-writers races 1 first 4 last 4",
                        "host-between races 0 first 5 last 5")
                .anyMatch(line -> line.startsWith("copy-without-event races 1 "))
                .anyMatch(line -> line.startsWith("kernel-without-event races 1 "));
    }
}
