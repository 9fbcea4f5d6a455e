package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// What JUnit's console finds by tag, as `cistern gpu-tests` asks it.
class SuiteTagsTests {
    @Test
    void theBasicOnesAreTheDriverAndEveryAllocator() throws Exception {
        assertThat(discovered("--include-tag=basic"))
                .anyMatch(line -> line.contains("ChosenDriverContract"))
                .anyMatch(line -> line.contains("CatalogConformance"))
                .anyMatch(line -> line.contains("SeededScenarios"))
                .noneMatch(line -> line.contains("SharedStreams") || line.contains("Nccl"));
    }

    @Test
    void everySuiteHasATag() throws Exception {
        assertThat(discovered("--exclude-tag=any()")).anyMatch(line -> line.matches(".* 0 tests found .*"));
        assertThat(discovered("--include-tag=any()"))
                .anyMatch(line -> line.contains("SharedStreams"))
                .anyMatch(line -> line.contains("TwoProcessNccl"))
                .anyMatch(line -> line.contains("Buffers"));
    }

    private static List<String> discovered(String filter) throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(List.of("discover", "--disable-banner", "--include-classname=.*"));
        arguments.addAll(
                List.of("--exclude-classname=([^$]*Tests|.*[$][0-9]+)", "--select-package=io.cistern.suites", filter));
        return new JavaProgram(
                        "org.junit.platform.console.ConsoleLauncher",
                        List.of("-cp", System.getProperty("java.class.path")),
                        arguments,
                        Map.of())
                .run();
    }
}
