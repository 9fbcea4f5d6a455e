package io.cistern.benchmarks.measure;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/// `measure pack`: packs a distribution with its own Java runtime and the suites, the benchmarks with JMH,
/// Netty, JCuda and JavaCPP, the examples, the peers' sources, and `measure` itself.
@Command(
        name = "pack",
        description =
                "Packs what run needs on a machine with a GPU and without a JDK: tar xJf KIT && cistern-measure/measure"
                        + " run RESULTS")
final class Pack implements Callable<Integer> {
    private static final List<String> STEPS = List.of(
            "rm -rf tools/benchmarks/target/jmh",
            "mvn -q -B -Pfast,dist package -pl tools/cli,tools/benchmarks,examples -am",
            "mvn -q -B -Pfast package dependency:copy-dependencies -pl tools/benchmarks -am -DincludeScope=runtime"
                    + " -DincludeGroupIds=org.openjdk.jmh,net.sf.jopt-simple,org.apache.commons,io.netty,org.jcuda,org.bytedeco"
                    + " -DoutputDirectory=$PWD/tools/benchmarks/target/jmh",
            "mkdir -p $kit/jmh",
            "cp -r tools/cli/target/dist/cistern-*/ $kit/dist",
            "cp tools/benchmarks/target/jmh/*.jar"
                    + " {tools/benchmarks,handle-pool,integrations/jcuda,integrations/javacpp,examples}/target/fast/cistern-*.jar $kit/jmh",
            "cp -r tools/benchmarks/peers tools/benchmarks/measure $kit",
            "tar --sort=name --owner=0 --group=0 --numeric-owner -C $kit/.. -c cistern-measure | xz -6 -T0 > $archive",
            "rm -r $kit");

    @Parameters(paramLabel = "KIT.tar.xz")
    private Path archive = Path.of("");

    @Override
    public Integer call() throws IOException, InterruptedException {
        ProcessBuilder shell = new ProcessBuilder("bash", "-euo", "pipefail", "-c", String.join("\n", STEPS))
                .directory(Measure.root().toFile())
                .inheritIO();
        shell.environment().put("JAVA_HOME", System.getProperty("java.home"));
        shell.environment()
                .put(
                        "kit",
                        Files.createTempDirectory("measure")
                                .resolve("cistern-measure")
                                .toString());
        shell.environment().put("archive", archive.toAbsolutePath().toString());
        return shell.start().waitFor();
    }
}
