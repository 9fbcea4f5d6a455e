package io.cistern.examples.kotlin;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Runs the example as its reader would: in a JVM of its own.
class KotlinExamplesTests {
    @Test
    void coroutinesAllocateFromThePoolOfTheirScope() throws Exception {
        List<String> options = List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "--class-path",
                System.getProperty("java.class.path"));
        assertThat(new JavaProgram("io.cistern.examples.kotlin.CoroutinesInAPoolKt", options).run())
                .containsExactly(
                        "the sum is 1048576.0",
                        "100 coroutines have 100 blocks of the pool",
                        "outside the scope it has 0");
    }
}
