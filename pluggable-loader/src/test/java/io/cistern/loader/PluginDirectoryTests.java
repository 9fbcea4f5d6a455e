package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.Catalog.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.logging.Filter;
import java.util.logging.Logger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What a plug-in directory brings, and what of it is refused.
class PluginDirectoryTests {
    @TempDir
    private Path folder;

    private PluginFolder plugins;

    @BeforeEach
    void makeFolder() throws IOException {
        plugins = new PluginFolder(folder);
    }

    @Test
    void aDroppedJarIsListedWithItsDigest() throws IOException {
        Path jar = plugins.drop(
                "good.jar",
                PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good"))
                        .source("acme.Ranges", Sources.source("acme.Ranges", "ranges"))
                        .service(SegmentSourceProvider.class, "acme.Ranges"));
        Catalog catalog = plugins.discover();

        String origin =
                jar + ", sha256 " + AllowedDigests.of(Files.readAllBytes(jar)).substring(0, 12);
        assertThat(catalog.entries())
                .contains(
                        new Catalog.Entry(Kind.ALLOCATOR, "good", origin, 0, java.util.Optional.empty()),
                        new Catalog.Entry(Kind.SOURCE, "ranges", origin, 0, java.util.Optional.empty()));
        assertThat(catalog.allocator("good").name()).isEqualTo("good");
        assertThat(PluginFolder.problems(catalog)).isEmpty();
    }

    @Test
    void aSecondCopyOfACisternJarIsToldWithItsOwnPlace() throws IOException {
        String service = "META-INF/services/" + AllocatorProvider.class.getName();
        Path copy = plugins.path.resolve("copy.jar");
        try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(copy))) {
            jar.putNextEntry(new JarEntry(service));
            jar.write("io.cistern.loader.library.LibraryProvider".getBytes(StandardCharsets.UTF_8));
        }
        PluginFolder.own(copy);

        assertThat(plugins.discover().entries())
                .filteredOn(entry -> entry.name().equals("library") && entry.kind() == Kind.ALLOCATOR)
                .hasSize(2)
                .anySatisfy(entry -> assertThat(entry.origin()).startsWith(copy + ", sha256 "))
                .anySatisfy(entry -> assertThat(entry.problem().orElseThrow())
                        .contains("shares its name with io.cistern.loader.library.LibraryProvider of " + copy));
    }

    @Test
    void twoPluginsWithClashingDependenciesLiveTogether() {
        for (String each : new String[] {"one", "two"}) {
            String name = "lib.Version.NAME + \"-" + each + "\"";
            plugins.drop(
                    each + ".jar",
                    PluginJar.allocator("acme.Plugin", Sources.provider("acme.Plugin", name, "SPI_VERSION", ""))
                            .source(
                                    "lib.Version",
                                    "package lib; public class Version { public static String NAME = new String(\"v"
                                            + each.length()
                                            + each.charAt(0) + "\"); }"));
        }
        Catalog catalog = plugins.discover();

        assertThat(PluginFolder.problems(catalog)).isEmpty();
        assertThat(catalog.allocator("v3o-one").name()).isEqualTo("v3o-one");
        assertThat(catalog.allocator("v3t-two").name()).isEqualTo("v3t-two");
    }

    @Test
    void aFolderOfJarsIsOnePlugin() throws IOException {
        Path one = PluginFolder.directory(plugins.path.resolve("acme"));
        String source = Sources.provider("acme.Good", "lib.Names.MINE", "SPI_VERSION", "");
        PluginJar whole = PluginJar.allocator("acme.Good", source)
                .source(
                        "lib.Names",
                        "package lib; public class Names { public static String MINE = \"mine\".strip(); }");
        whole.without("acme.Good").build(one.resolve("b-lib.jar"));
        PluginJar.allocator("acme.Good", source)
                .source(
                        "lib.Names",
                        "package lib; public class Names { public static String MINE = \"mine\".strip(); }")
                .without("lib.Names")
                .build(one.resolve("a-plugin.jar"));
        delete(one.resolve("b-lib.jar"), "META-INF/services/" + AllocatorProvider.class.getName());

        assertThat(plugins.discover().allocator("mine").name()).isEqualTo("mine");
    }

    private static void delete(Path jar, String entry) throws IOException {
        try (var files = java.nio.file.FileSystems.newFileSystem(jar)) {
            Files.delete(files.getPath(entry));
        }
    }

    @Test
    void thePluginDoesNotSeeTheProgramsClasses() {
        String source = Sources.provider(
                "acme.Nosy",
                "name()",
                "SPI_VERSION",
                "private static String named() { try { Class.forName(\"org.junit.jupiter.api.Test\"); return \"sees\"; }"
                        + " catch (ClassNotFoundException e) { return \"blind\"; } }");
        plugins.drop("nosy.jar", "acme.Nosy", source.replace("return name()", "return named()"));

        assertThat(plugins.discover().allocator("blind").name()).isEqualTo("blind");
    }

    @Test
    void aJarThatIsOverwrittenLaterDisturbsNobody() throws IOException {
        String source = Sources.provider("acme.Late", "late").replace("return null", "throw new acme.Later().error()");
        Path jar = plugins.drop(
                "late.jar",
                PluginJar.allocator("acme.Late", source)
                        .source(
                                "acme.Later",
                                "package acme; public class Later {"
                                        + " RuntimeException error() { return new IllegalStateException(\"loaded\"); } }"));
        AllocatorProvider provider = plugins.discover().allocator("late");
        Files.writeString(jar, "something else");

        assertThatThrownBy(() -> provider.open(null)).hasMessage("loaded");
    }

    @Test
    void halfWrittenJarsAreRefusedWhereverTheyEnd() throws IOException {
        Path jar = plugins.drop("good.jar", "acme.Good", Sources.provider("acme.Good", "good"));
        byte[] whole = Files.readAllBytes(jar);
        for (int length = 0; length < whole.length; length += 37) {
            Files.write(jar, java.util.Arrays.copyOf(whole, length));
            assertThat(PluginFolder.problems(plugins.discover()))
                    .as("%s of %s bytes", length, whole.length)
                    .hasEntrySatisfying("good.jar", why -> assertThat(why).contains("is not a JAR, or is truncated: "));
        }
        Files.write(jar, whole);
        assertThat(PluginFolder.problems(plugins.discover())).isEmpty();
    }

    @Test
    void whatEverybodyMayWriteToIsRefused() throws IOException {
        Path jar = plugins.drop("good.jar", "acme.Good", Sources.provider("acme.Good", "good"));
        Files.setPosixFilePermissions(jar, PosixFilePermissions.fromString("rw-rw-rw-"));
        assertThat(PluginFolder.problems(plugins.discover()))
                .containsExactly(Map.entry("good.jar", "is writable by everyone; chmod go-w it"));

        Files.setPosixFilePermissions(jar, PosixFilePermissions.fromString("rw-r--r--"));
        Files.setPosixFilePermissions(plugins.path, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertThat(PluginFolder.problems(plugins.discover()))
                .containsExactly(
                        Map.entry("plugins", "(property cistern.plugins) is writable by everyone; chmod go-w it"));
    }

    @Test
    void onlyAllowedContentsAreLoaded() throws IOException {
        Path good = plugins.drop("good.jar", "acme.Good", Sources.provider("acme.Good", "good"));
        Path other = plugins.drop("other.jar", "acme.Other", Sources.provider("acme.Other", "other"));
        Path list = Files.writeString(
                folder.resolve("allowed"), AllowedDigests.of(Files.readAllBytes(good)) + "  good.jar\n");
        plugins.properties.put("cistern.plugins.allowed", PluginFolder.own(list).toString());
        Catalog catalog = plugins.discover();

        assertThat(catalog.allocator("good").name()).isEqualTo("good");
        assertThat(PluginFolder.problems(catalog))
                .containsExactly(Map.entry(
                        "other.jar",
                        "is not allowed: its SHA-256 is " + AllowedDigests.of(Files.readAllBytes(other))
                                + ", which is not in property cistern.plugins.allowed (" + list + ")"));
    }

    @Test
    void aListThatCannotBeReadAllowsNothing() {
        plugins.drop("good.jar", "acme.Good", Sources.provider("acme.Good", "good"));
        plugins.properties.put("cistern.plugins.allowed", folder.resolve("none").toString());

        assertThat(PluginFolder.problems(plugins.discover()).get("good.jar")).contains("can't be read: ");
    }

    @Test
    void whatIsNoDirectoryIsTold() throws IOException {
        plugins.properties.put("cistern.plugins", folder.resolve("none").toString());
        assertThat(PluginFolder.problems(plugins.discover()))
                .containsEntry(
                        "none",
                        "(property cistern.plugins) does not exist; create it, or name the directory that the"
                                + " plug-ins are"
                                + " in");

        Path file = plugins.drop("good.jar", "acme.Good", Sources.provider("acme.Good", "good"));
        plugins.properties.put("cistern.plugins", file.toString());
        assertThat(PluginFolder.problems(plugins.discover()))
                .containsEntry("good.jar", "(property cistern.plugins) is not a directory; name the one that it is in");
    }

    @Test
    void aJarThatOffersNothingIsTold() {
        plugins.drop("lib.jar", new PluginJar().source("lib.Library", "package lib; public class Library {}"));
        plugins.drop("empty.jar", new PluginJar().service(AllocatorProvider.class, "# nobody"));
        String file = "META-INF/services/io.cistern.spi.AllocatorProvider";
        String nothing = "offers neither an allocator nor a segment source: ";
        String cure = "; put a JAR that a plug-in needs into one folder with the plug-in";

        assertThat(PluginFolder.problems(plugins.discover()))
                .containsOnly(
                        Map.entry("lib.jar", nothing + "it has no " + file + cure),
                        Map.entry("empty.jar", nothing + "its " + file + " names no class" + cure));
    }

    @Test
    void whatIsRefusedIsLoggedAtOnce() {
        Path none = folder.resolve("none");
        plugins.properties.put("cistern.plugins", none.toString());

        assertThat(logged()).singleElement().asString().startsWith(none + " (property cistern.plugins) does not exist");
    }

    @Test
    void providersThatCanNotBeUsedAreLoggedWithTheirJars() {
        Path gone = plugins.drop("gone.jar", new PluginJar().service(AllocatorProvider.class, "acme.Gone"));
        Path one = plugins.drop("one.jar", "acme.One", Sources.provider("acme.One", "same"));
        Path two = plugins.drop("two.jar", "acme.Two", Sources.provider("acme.Two", "same"));

        assertThat(logged())
                .hasSize(3)
                .anyMatch(line ->
                        line.startsWith("acme.Gone of " + gone) && line.endsWith("Provider acme.Gone not found"))
                .anyMatch(
                        line -> line.startsWith("acme.One of " + one) && line.contains("shares its name with acme.Two"))
                .anyMatch(line ->
                        line.startsWith("acme.Two of " + two) && line.contains("shares its name with acme.One"));
    }

    private List<String> logged() {
        List<String> logged = new ArrayList<>();
        Logger logger = Logger.getLogger(ProviderScan.class.getName());
        Filter before = logger.getFilter();
        logger.setFilter(line -> !logged.add(line.getMessage()));
        try {
            plugins.discover();
        } finally {
            logger.setFilter(before);
        }
        return logged;
    }

    @Test
    void aPluginForALaterJavaSaysWhichItNeeds() throws IOException {
        Path jar = plugins.drop("later.jar", "acme.Later", Sources.provider("acme.Later", "later"));
        int running = Runtime.version().feature();
        try (var files = java.nio.file.FileSystems.newFileSystem(jar)) {
            Path file = files.getPath("acme/Later.class");
            byte[] bytes = Files.readAllBytes(file);
            bytes[7]++; // the class file's version
            Files.write(file, bytes);
        }

        assertThat(PluginFolder.problems(plugins.discover()))
                .containsExactly(Map.entry(
                        "acme.Later",
                        "fails to load: it needs Java " + (running + 1) + ", and this is Java " + running));
    }

    @Test
    void aNewerSpiIsRefusedHereToo() {
        plugins.drop("new.jar", "acme.New", Sources.provider("acme.New", "\"new\"", "2", ""));

        assertThatThrownBy(() -> plugins.discover().allocator("new"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("is built for version 2 of the SPI, newer than version 1 here");
    }

    @Test
    void aNameThatTwoPluginsClaimIsNobodys() {
        plugins.drop("one.jar", "one.Fast", Sources.provider("one.Fast", "fast"));
        plugins.drop("two.jar", "two.Fast", Sources.provider("two.Fast", "fast"));

        assertThatThrownBy(() -> plugins.discover().allocator("fast"))
                .hasMessageContaining("one.jar")
                .hasMessageContaining("shares its name with two.Fast of ");
    }

    @Test
    void aNameStandsForASpec() {
        plugins.properties.put("cistern.define.plain", "direct");
        plugins.properties.put("cistern.define.bad", "direct:");
        Catalog catalog = plugins.discover();

        assertThat(catalog.allocator("plain").name()).isEqualTo("plain");
        assertThat(PluginFolder.problems(catalog).get("bad")).startsWith("spec 'direct:': a key is expected");
    }

    @Test
    void aNameThatLeadsBackToItselfIsRefused() {
        plugins.properties.put("cistern.define.plain", "other");
        plugins.properties.put("cistern.define.other", "plain");
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(plugins.discover()).open()) {
            assertThatThrownBy(() -> memory.open("plain"))
                    .hasMessage("property cistern.define.plain: property cistern.define.other: allocator plain refers"
                            + " to itself, through allocator other");
        }
    }

    @Test
    void onlyWhatChangedIsLoadedAgain() {
        plugins.drop("same.jar", "acme.Same", Sources.provider("acme.Same", "same"));
        plugins.drop("next.jar", "acme.Next", Sources.provider("acme.Next", "next"));
        LoaderCatalog before = (LoaderCatalog) plugins.discover();
        plugins.drop("next.jar", "acme.Next", Sources.provider("acme.Next", "newer"));
        LoaderCatalog after = (LoaderCatalog) before.refreshed();

        assertThat(after.plugins()).hasSize(2).containsOnlyOnce(before.plugins().get(1));
        assertThat(after.plugins()).doesNotContain(before.plugins().get(0));
        assertThat(after.allocator("newer").name()).isEqualTo("newer");
        assertThat(before.allocator("next").name()).isEqualTo("next");
        assertThat(after.entries()).isNotEqualTo(before.entries());
        assertThat(after.refreshed().entries()).isEqualTo(after.entries());
    }
}
