package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.jvm.JavaProgram;
import io.cistern.probe.PluginProbe;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A third party's JAR, compiled apart against allocator-api alone, in a JVM of its own ([PluginProbe] runs there).
class SeparateJvmTests {
    private static final Path API = PluginJar.home(AllocatorProvider.class);
    private static final List<Path> CISTERN = List.of(
            API,
            PluginJar.home(CudaDriver.class),
            PluginJar.home(LoaderCatalogProvider.class),
            PluginJar.home(SimulatedGpu.class));
    private static final Path TESTS = PluginJar.home(PluginProbe.class);
    private static final String BUILT_IN_CURRENT = "current: direct, highest priority of those available";

    @TempDir
    private Path folder;

    private Path acme;

    @BeforeEach
    void buildPlugin() {
        acme = PluginJar.allocator("acme.Recycling", Sources.recycling("acme.Recycling", "acme"))
                .build(folder.resolve("acme.jar"));
    }

    @Test
    void aPluginIsListedMeteredAndGetsItsMemoryBack() throws Exception {
        assertThat(onClassPath(Map.of(), List.of("-Dcistern.allocator=acme"), acme))
                .contains("ALLOCATOR acme of " + acme)
                .containsSubsequence(
                        "current: acme, property cistern.allocator",
                        "metered: acme allocations=2 frees=0 requested=6 MiB peak=6 MiB",
                        "metered: acme allocations=2 frees=2 requested=0 MiB peak=6 MiB",
                        "held: 6 MiB",
                        "lost: 0 bytes");
    }

    @Test
    void theEnvironmentVariableMakesItCurrent() throws Exception {
        assertThat(onClassPath(Map.of("CISTERN_ALLOCATOR", "acme"), List.of(), acme))
                .containsSubsequence(
                        "current: acme, environment variable CISTERN_ALLOCATOR", "held: 6 MiB", "lost: 0 bytes");
    }

    @Test
    void thePropertyComesBeforeTheVariable() throws Exception {
        assertThat(onClassPath(Map.of("CISTERN_ALLOCATOR", "acme"), List.of("-Dcistern.allocator=direct"), acme))
                .contains("current: direct, property cistern.allocator", "lost: 0 bytes");
    }

    @Test
    void droppingAJarInDoesNotChangeTheDefault() throws Exception {
        assertThat(onClassPath(Map.of(), List.of(), acme))
                .containsSubsequence("ALLOCATOR acme of " + acme, BUILT_IN_CURRENT, "held: 4 MiB", "lost: 0 bytes");
    }

    @Test
    void badJarsAreToldAndHideNoOther() throws Exception {
        Path rival = PluginJar.allocator("rival.Acme", Sources.provider("rival.Acme", "acme"))
                .build(folder.resolve("rival.jar"));
        Path missing =
                new PluginJar().service(AllocatorProvider.class, "gone.Gone").build(folder.resolve("missing.jar"));
        Path newer = PluginJar.allocator("next.New", Sources.provider("next.New", "\"next\"", "2", ""))
                .build(folder.resolve("newer.jar"));
        Path throwing = PluginJar.allocator(
                        "bad.Bad",
                        Sources.provider("bad.Bad", "\"bad\"", "1", "{ if (true) throw new Error(\"no\"); }"))
                .build(folder.resolve("throwing.jar"));

        assertThat(onClassPath(Map.of(), List.of(), acme, rival, missing, newer, throwing))
                .contains(
                        "ALLOCATOR acme of " + acme + " PROBLEM shares its name with rival.Acme of " + rival
                                + "; remove all but one",
                        "ALLOCATOR acme of " + rival + " PROBLEM shares its name with acme.Recycling of " + acme
                                + "; remove all but one",
                        "ALLOCATOR gone.Gone of " + missing + " PROBLEM fails to load: Provider gone.Gone not found",
                        "ALLOCATOR next of " + newer
                                + " PROBLEM is built for version 2 of the SPI, newer than version 1 here;"
                                + " update Cistern or take an older release of the plug-in",
                        "ALLOCATOR bad.Bad of " + throwing
                                + " PROBLEM fails to load: Provider bad.Bad could not be instantiated: java.lang.Error: no",
                        BUILT_IN_CURRENT + "; left out, since they can't be used: 5",
                        "lost: 0 bytes");
    }

    @Test
    void aNamedAllocatorThatIsDuplicateIsRefusedAndNotReplaced() throws Exception {
        Path rival = PluginJar.allocator("rival.Acme", Sources.provider("rival.Acme", "acme"))
                .build(folder.resolve("rival.jar"));

        assertThat(onClassPath(Map.of("CISTERN_ALLOCATOR", "acme"), List.of(), acme, rival))
                .endsWith(
                        "refused: environment variable CISTERN_ALLOCATOR: allocator 'acme' can't be used: acme.Recycling of "
                                + acme + " shares its name with rival.Acme of " + rival + "; remove all but one");
    }

    @Test
    void aMistypedNameIsRefusedWithTheNearest() throws Exception {
        assertThat(onClassPath(Map.of(), List.of("-Dcistern.allocator=amce"), acme))
                .endsWith(
                        "refused: property cistern.allocator: no allocator is named 'amce'; known, nearest first: acme, direct, library");
    }

    @Test
    void aModuleInThePluginDirectoryHasALayerOfItsOwn() throws Exception {
        Path plugins = PluginFolder.directory(folder.resolve("plugins"));
        Path module = moduleJar(plugins.resolve("acme-module.jar"));

        assertThat(run(
                        Map.of(),
                        List.of(
                                "--module-path",
                                JavaProgram.joined(CISTERN),
                                "--add-modules",
                                "ALL-MODULE-PATH",
                                "--class-path",
                                TESTS.toString(),
                                "-Dcistern.plugins=" + plugins,
                                "-Dcistern.allocator=acme")))
                .anyMatch(line -> line.startsWith("ALLOCATOR acme of module acme.plugin (" + module + "), sha256 "))
                .containsSubsequence("current: acme, property cistern.allocator", "held: 6 MiB", "lost: 0 bytes");
    }

    @Test
    void aPluginJarServesModulePathAndClassPath() throws Exception {
        Path plugins = PluginFolder.directory(folder.resolve("plugins"));
        Files.move(acme, plugins.resolve("acme.jar"));
        List<String> chosen = List.of("-Dcistern.plugins=" + plugins, "-Dcistern.allocator=acme");
        List<String> modules = new ArrayList<>(chosen);
        modules.addAll(List.of(
                "--module-path",
                JavaProgram.joined(CISTERN),
                "--add-modules",
                "ALL-MODULE-PATH",
                "--class-path",
                TESTS.toString()));

        assertThat(onClassPath(Map.of(), chosen)).contains("held: 6 MiB", "lost: 0 bytes");
        assertThat(run(Map.of(), modules)).contains("held: 6 MiB", "lost: 0 bytes");
    }

    private Path moduleJar(Path file) {
        return PluginJar.allocator("acme.Recycling", Sources.recycling("acme.Recycling", "acme"))
                .source("module-info", """
                        module acme.plugin {
                            requires io.cistern.api;
                            provides io.cistern.spi.AllocatorProvider with acme.Recycling;
                        }
                        """)
                .build(file, List.of("--module-path", JavaProgram.joined(CISTERN.subList(0, 2))));
    }

    @Test
    void modulesAreFoundOnTheModulePath() throws Exception {
        Path module = moduleJar(folder.resolve("acme-module.jar"));
        List<Path> modules = new ArrayList<>(CISTERN);
        modules.add(module);

        assertThat(run(
                        Map.of(),
                        List.of(
                                "--module-path",
                                JavaProgram.joined(modules),
                                "--add-modules",
                                "ALL-MODULE-PATH",
                                "--class-path",
                                TESTS.toString(),
                                "-Dcistern.allocator=acme")))
                .contains(
                        "ALLOCATOR acme of module acme.plugin (" + module + ")",
                        "ALLOCATOR direct of module io.cistern.api (" + API + ")")
                .containsSubsequence("current: acme, property cistern.allocator", "held: 6 MiB", "lost: 0 bytes");
    }

    private List<String> onClassPath(Map<String, String> variables, List<String> options, Path... plugins)
            throws Exception {
        List<Path> classPath = Stream.of(CISTERN.stream(), Stream.of(TESTS), Stream.of(plugins))
                .flatMap(paths -> paths)
                .toList();
        List<String> all = new ArrayList<>(options);
        all.addAll(List.of("--class-path", JavaProgram.joined(classPath)));
        return run(variables, all);
    }

    private List<String> run(Map<String, String> variables, List<String> options)
            throws IOException, InterruptedException {
        List<String> all = new ArrayList<>(List.of("-XX:TieredStopAtLevel=1", "-Xmx128m"));
        all.addAll(options);
        return new JavaProgram(PluginProbe.class.getName(), all, List.of(), variables).run();
    }
}
