package io.cistern.examples.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Runs the example as its reader would: in a JVM of its own.
final class SparkExamplesTests {
    @Test
    void salesAreThoseOfTheCpu() throws Exception {
        List<String> options =
                List.of("-XX:TieredStopAtLevel=1", "--class-path", System.getProperty("java.class.path"));
        assertThat(new JavaProgram("io.cistern.examples.spark.SalesByArticle", options).run())
                .contains("1000 articles, equal to the CPU's: true");
    }
}
