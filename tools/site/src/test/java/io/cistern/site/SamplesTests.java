package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// Every block of Java on a page compiles, and where it says so, runs on the simulated GPU and prints what the
/// page says.
final class SamplesTests {
    /// More would mean that pages show what nobody checks.
    private static final int MAX_FRAGMENTS = 6;

    @TempDir
    private Path classes;

    private static List<Sample> samples() {
        List<Sample> samples = new ArrayList<>();
        for (Page page : AllPages.all()) {
            samples.addAll(Sample.of(page));
        }
        return samples;
    }

    @Test
    @ResourceLock(Resources.SYSTEM_OUT)
    void samplesCompileAndPrintWhatPagesSay() throws Exception {
        List<Sample> samples =
                samples().stream().filter(sample -> sample.fragment().isEmpty()).toList();
        List<SampleSource> sources = samples.stream().map(SampleSource::of).toList();
        assertThat(SampleCompiler.compile(sources, classes)).isEmpty();
        List<Sample> run =
                samples.stream().filter(sample -> sample.runs().isPresent()).toList();
        assertThat(run).hasSizeGreaterThan(2);
        for (Sample sample : run) {
            assertThat(outputOf(sample)).as(sample.toString()).isEqualTo(sample.output());
        }
    }

    @Test
    void fewBlocksAreFragments() {
        assertThat(samples().stream()
                        .filter(sample -> sample.fragment().isPresent())
                        .toList())
                .hasSizeLessThanOrEqualTo(MAX_FRAGMENTS)
                .allSatisfy(sample -> assertThat(sample.fragment().orElse("")).hasSizeGreaterThan(10));
    }

    @Test
    void aSampleThatDoesNotCompileIsFound() throws IOException {
        Page page = new Page(Path.of("x.md"), Markdown.parse("```java\nint n = allocate();\n```"), java.util.Map.of());
        List<SampleSource> sources =
                Sample.of(page).stream().map(SampleSource::of).toList();
        assertThat(SampleCompiler.compile(sources, classes))
                .singleElement()
                .asString()
                .contains("allocate()");
    }

    private String outputOf(Sample sample) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        URL[] path = {classes.toUri().toURL()};
        try (URLClassLoader loader = new URLClassLoader(path, getClass().getClassLoader())) {
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            run(sample, loader.loadClass(SampleSource.of(sample).className()));
        } finally {
            System.setOut(before);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }

    private static void run(Sample sample, Class<?> type) throws Exception {
        if (sample.runs().orElse("").isEmpty()) {
            type.getMethod("run").invoke(type.getConstructor().newInstance());
        } else {
            type.getMethod("main", String[].class).invoke(null, (Object) new String[0]);
        }
    }
}
