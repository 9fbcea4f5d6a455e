package io.cistern.examples.scala;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Runs the examples as their reader would: in JVMs of their own.
class ScalaExamplesTests {
    @Test
    void futuresAllocateFromThePoolOfTheirScope() throws Exception {
        List<String> options = List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "--class-path",
                System.getProperty("java.class.path"));
        assertThat(new JavaProgram("io.cistern.examples.scala.FuturesInAPool", options).run())
                .containsExactly(
                        "the sum is 1048576.0",
                        "100 futures have 100 blocks of the pool",
                        "outside the scope it has 0");
    }

    @Test
    void sparkSumsOnTheDevicesOfItsExecutors() throws Exception {
        List<String> options =
                List.of("-XX:TieredStopAtLevel=1", "--class-path", System.getProperty("java.class.path"));
        assertThat(new JavaProgram("io.cistern.examples.scala.SparkSales", options).run())
                .contains("sums of articles: 4995000, 4996000, 4997000, 4998000, 4999000, 5000000, 5001000, 5002000,"
                        + " 5003000, 5004000");
    }
}
