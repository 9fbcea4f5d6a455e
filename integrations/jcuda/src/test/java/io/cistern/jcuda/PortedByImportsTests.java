package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// JCuda programs become Cistern's by the command that the documentation has, which changes imports alone.
@EnabledOnOs(OS.LINUX)
class PortedByImportsTests {
    private static final Path EXAMPLES = Path.of("../../examples/src/main/java/io/cistern/examples");
    private static final String OURS = "import static io.cistern.jcuda.CisternMalloc.cu";
    private static final String JCUDAS = "import static jcuda.driver.JCudaDriver.cu";

    @TempDir
    private Path classes;

    /// What the compiler says; empty if nothing.
    private String compile(String classPath, List<String> program, Path... others) throws IOException {
        Path folder = Files.createTempDirectory(classes, "program");
        String name = program.stream()
                .filter(line -> line.startsWith("public ") && line.contains("class "))
                .map(line -> line.replaceAll(".*class (\\w+).*", "$1"))
                .findFirst()
                .orElseThrow();
        List<String> arguments = new ArrayList<>(List.of("-proc:none", "-nowarn", "-cp", classPath, "-d"));
        arguments.add(folder.toString());
        arguments.add(Files.write(folder.resolve(name + ".java"), program).toString());
        Stream.of(others).forEach(other -> arguments.add(other.toString()));
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        int result = compiler.run(null, said, said, arguments.toArray(String[]::new));
        return result == 0 ? "" : said.toString(StandardCharsets.UTF_8);
    }

    private static String jcudaAlone() throws Exception {
        return Path.of(JCudaDriver.class
                        .getProtectionDomain()
                        .getCodeSource()
                        .getLocation()
                        .toURI())
                .toString();
    }

    @Test
    void theExampleIsAJCudaProgramWithOtherImports() throws Exception {
        List<String> ported = Files.readAllLines(EXAMPLES.resolve("VectorAddByImports.java"));
        List<String> original =
                ported.stream().map(line -> line.replace(OURS, JCUDAS)).toList();

        assertThat(String.join("\n", original)).doesNotContain("io.cistern.jcuda", "io.cistern.cuda");
        assertThat(compile(jcudaAlone(), original, EXAMPLES.resolve("Resources.java")))
                .isEmpty();
        assertThat(ImportCommand.changed(original)).isEqualTo(ported);
        assertThat(ImportCommand.differences(original, ported)).hasSize(4).allMatch(line -> line.startsWith(OURS));
    }

    /// Programs of JCuda's own repository of samples, where a copy of its sources is given: each that compiles
    /// does so with its imports changed, and no other line is.
    @Test
    @EnabledIfSystemProperty(named = "cistern.jcuda.samples", matches = ".+")
    void samplesOfJCudaArePortedByTheirImports() throws Exception {
        Path sources = Path.of(System.getProperty("cistern.jcuda.samples"));
        List<String> ported = new ArrayList<>();
        try (Stream<Path> files = Files.walk(sources)) {
            for (Path file :
                    files.filter(path -> path.toString().endsWith(".java")).toList()) {
                List<String> original = Files.readAllLines(file);
                List<String> changed = ImportCommand.changed(original);
                Path[] others = utilities(sources, file);
                if (!changed.equals(original)
                        && compile(System.getProperty("java.class.path"), original, others)
                                .isEmpty()) {
                    assertThat(compile(System.getProperty("java.class.path"), changed, others))
                            .as("%s", file)
                            .isEmpty();
                    assertThat(ImportCommand.differences(original, changed)).allMatch(line -> line.startsWith(OURS));
                    ported.add(file.getFileName().toString());
                }
            }
        }
        assertThat(ported).isNotEmpty();
        System.out.println("ported: " + ported);
    }

    private static Path[] utilities(Path sources, Path without) throws IOException {
        try (Stream<Path> files = Files.walk(sources)) {
            return files.filter(path -> path.toString().endsWith("Utils.java") && !path.equals(without))
                    .toArray(Path[]::new);
        }
    }
}
