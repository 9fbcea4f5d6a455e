package io.cistern.internal.routing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.cistern.caching.internal.base.CountedTogether;
import io.cistern.caching.internal.heap.NeighbourComes;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Runs the tests that jcstress races millions of times, in processes of their own, under the JVM's
/// different ways to compile them. Under a minute each, so with the profile `long` alone.
@EnabledIfSystemProperty(named = "cistern.stress.long", matches = "true")
class HardwareTests {
    @TempDir
    private Path folder;

    @ParameterizedTest
    @ValueSource(
            classes = {
                FreedTwice.class,
                ClosedMeanwhile.class,
                ExactBudget.class,
                CountedTogether.class,
                NeighbourComes.class
            })
    void nothingForbiddenHappens(Class<?> raced) throws Exception {
        String classPath = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        Process process = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        classPath,
                        "org.openjdk.jcstress.Main",
                        "-t",
                        raced.getSimpleName(),
                        "-m",
                        "quick",
                        "-af",
                        "NONE",
                        "-jvmArgs",
                        "--enable-native-access=ALL-UNNAMED",
                        "-r",
                        folder.toString()))
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        System.out.println(said.substring(Math.max(0, said.indexOf("RUN RESULTS"))));
        assertEquals(0, process.waitFor(), said);
        assertTrue(said.contains("RUN RESULTS"), said);
    }
}
