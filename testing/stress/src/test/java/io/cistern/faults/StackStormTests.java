package io.cistern.faults;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import io.cistern.jvm.RunningProgram;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A StackOverflowError in the middle of calls may lose the block that it hit; but no thread hangs, no limit keeps
/// bytes, and everything can be closed. In compiled and in interpreted code, which fail at other places.
class StackStormTests {
    @ParameterizedTest
    @ValueSource(strings = {"-Xint", "-Xmixed"})
    void aFullStackHangsNothing(String mode) throws Exception {
        List<String> options = List.of(
                mode,
                "-XX:TieredStopAtLevel=4",
                "--enable-native-access=ALL-UNNAMED",
                "-XX:-PrintWarnings",
                "-Dcistern.stress.long=" + Boolean.getBoolean("cistern.stress.long"),
                "--class-path",
                System.getProperty("java.class.path"));
        List<String> wrong = new ArrayList<>();
        String line = "";
        try (RunningProgram program = new JavaProgram(
                        StackStorm.class.getName(), options, List.of("caching", "async", "direct"), Map.of())
                .start()) {
            while (!line.startsWith("OVERFLOWS")) {
                line = program.expect("");
                if (line.startsWith("WRONG")) {
                    wrong.add(line);
                }
            }
        }
        assertThat(wrong).isEmpty();
        assertThat(line).isNotEqualTo("OVERFLOWS 0");
    }
}
