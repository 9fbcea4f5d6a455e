package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.Catalog.Entry;
import io.cistern.spi.catalog.Catalog.Kind;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Whatever a JAR brings, what is sound works, what is not is told with its place, and the messages are these.
class DiscoveryTests {
    private static final String LOADING = "fails to load: Provider ";

    @TempDir
    private Path folder;

    private final List<URL> classPath = new ArrayList<>();
    private final List<URLClassLoader> loaders = new ArrayList<>();

    @AfterEach
    void closeJars() throws IOException {
        for (URLClassLoader loader : loaders) {
            loader.close();
        }
    }

    @Test
    void aSoundJarIsFoundBesideWhatCisternBrings() {
        Path jar = add(
                "good.jar",
                PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good"))
                        .source("acme.Ranges", Sources.source("acme.Ranges", "ranges"))
                        .service(SegmentSourceProvider.class, "# ours\nacme.Ranges # the only one"));
        Catalog catalog = discover();

        assertThat(catalog.allocator("good").name()).isEqualTo("good");
        assertThat(catalog.source("ranges").name()).isEqualTo("ranges");
        assertThat(catalog.entries())
                .contains(
                        new Entry(Kind.ALLOCATOR, "good", jar.toString(), 0, Optional.empty()),
                        new Entry(Kind.SOURCE, "ranges", jar.toString(), 0, Optional.empty()),
                        new Entry(Kind.SOURCE, "linear", home(), 0, Optional.empty()));
        assertThat(catalog.allocator("direct").priority()).isPositive();
    }

    @Test
    void entriesComeByKindAndName() {
        add("z.jar", PluginJar.allocator("z.Z", Sources.provider("z.Z", "aaa")));
        add("a.jar", PluginJar.allocator("a.A", Sources.provider("a.A", "zzz")));

        assertThat(discover().entries().stream().map(Entry::name))
                .containsExactly("aaa", "caching", "direct", "library", "zzz", "library", "linear", "managed", "pages");
    }

    @Test
    void anUnknownNameListsTheKnownOnesTheNearestFirst() {
        add("good.jar", PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good")));
        Catalog catalog = discover();

        assertRefused(
                () -> catalog.allocator("godo"),
                "no allocator is named 'godo'; known, nearest first: good, pages, direct, …");
        assertRefused(
                () -> catalog.allocator("linaer"),
                "no allocator is named 'linaer'; known, nearest first: linear, library, managed, …");
        assertRefused(
                () -> catalog.source("linaer"),
                "no segment source is named 'linaer'; known, nearest first: linear, library, managed, …");
    }

    @Test
    void aSourceThatIsAskedForAsAnAllocatorSaysWhy() {
        add(
                "two.jar",
                new PluginJar()
                        .source("two.Linear", Sources.source("two.Linear", "linear"))
                        .service(SegmentSourceProvider.class, "two.Linear"));
        Catalog catalog = discover();

        assertThatThrownBy(() -> catalog.allocator("linear"))
                .hasMessageContaining("segment source 'linear' can't be used: ")
                .hasMessageContaining("shares its name with");
        assertRefused(
                () -> catalog.allocator("pages"),
                "no allocator is named 'pages'; it is a segment source: use it as caching:source=pages");
    }

    @Test
    void aNameOfCisternsOwnSaysWhichArtifactBringsIt() {
        assertThatThrownBy(() -> discover().allocator("async"))
                .hasMessageStartingWith(
                        "no allocator is named 'async'; add cistern-async-allocator, which provides it; known, nearest first: ");
        assertThatThrownBy(() -> discover().source("vmm"))
                .hasMessageStartingWith(
                        "no segment source is named 'vmm'; add cistern-nccl-allocator, which provides it; ");
    }

    @Test
    void aNameInTwoJarsIsAnErrorThatNamesBoth() {
        Path one = add("one.jar", PluginJar.allocator("one.Fast", Sources.provider("one.Fast", "fast")));
        Path two = add("two.jar", PluginJar.allocator("two.Fast", Sources.provider("two.Fast", "fast")));
        Catalog catalog = discover();

        assertRefused(
                () -> catalog.allocator("fast"),
                "allocator 'fast' can't be used: one.Fast of " + one + " shares its name with two.Fast of " + two
                        + "; remove all but one");
        assertThat(problems(catalog))
                .containsEntry("fast of " + one, "shares its name with two.Fast of " + two + "; remove all but one")
                .containsEntry("fast of " + two, "shares its name with one.Fast of " + one + "; remove all but one");
        assertThat(catalog.allocator("direct").name()).isEqualTo("direct");
    }

    @Test
    void aClassInTwoJarsIsAnErrorThatNamesBoth() {
        PluginJar release = PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good"));
        Path one = add("good-1.0.jar", release);
        Path two = add("good-1.1.jar", release);
        Catalog catalog = discover();

        assertRefused(
                () -> catalog.allocator("good"),
                "allocator 'good' can't be used: acme.Good of " + one + " is in " + one + " and in " + two
                        + "; remove all but one");
        assertThat(catalog.allocator("direct").name()).isEqualTo("direct");
    }

    @Test
    void aPluginMayNotTakeTheNameOfABuiltInOne() {
        Path jar = add("rival.jar", PluginJar.allocator("rival.Direct", Sources.provider("rival.Direct", "direct")));

        assertRefused(
                () -> discover().allocator("direct"),
                "allocator 'direct' can't be used: io.cistern.internal.direct.DirectProvider of " + home()
                        + " shares its name with rival.Direct of " + jar + "; remove all but one");
    }

    @Test
    void aProviderOfANewerSpiIsRefusedWithBothVersions() {
        Path jar = add("new.jar", PluginJar.allocator("acme.New", Sources.provider("acme.New", "\"new\"", "2", "")));

        assertRefused(
                () -> discover().allocator("new"),
                "allocator 'new' can't be used: acme.New of " + jar + " is built for version 2 of the SPI, newer than "
                        + "version 1 here; update Cistern or take an older release of the plug-in");
    }

    @Test
    void aNamelessProviderOfANewerSpiIsRefusedForTheSpi() {
        String mute = Sources.provider("acme.New", "String.valueOf(1 / 0)", "7", "");
        Path jar = add("new.jar", PluginJar.allocator("acme.New", mute));

        assertThat(problems(discover()))
                .containsEntry(
                        "acme.New of " + jar,
                        "is built for version 7 of the SPI, newer than version 1 here; update Cistern or take an older "
                                + "release of the plug-in");
    }

    @Test
    void versionsThatNeverWereAreRefused() {
        Path jar = add("old.jar", PluginJar.allocator("acme.Old", Sources.provider("acme.Old", "\"old\"", "0", "")));

        assertThat(problems(discover()))
                .containsEntry("acme.Old of " + jar, "says it is built for version 0 of the SPI, which never existed");
    }

    @Test
    void aConstructorThatThrowsHidesNoOther() {
        String broken = Sources.provider(
                "bad.Bad", "\"bad\"", "1", "public Bad() { throw new IllegalStateException(\"no luck\"); }");
        Path bad = add("bad.jar", PluginJar.allocator("bad.Bad", broken));
        add("good.jar", PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good")));
        Catalog catalog = discover();

        String problem = LOADING + "bad.Bad could not be instantiated: java.lang.IllegalStateException: no luck";
        assertThat(problems(catalog)).containsOnly(Map.entry("bad.Bad of " + bad, problem));
        assertThat(catalog.allocator("good").name()).isEqualTo("good");
        assertRefused(
                () -> catalog.allocator("bad"),
                "no allocator is named 'bad'; known, nearest first: good, pages, library, …; bad.Bad of " + bad + " "
                        + problem);
    }

    @Test
    void methodsThatThrowOrAnswerNullAreProblemsOfThatProvider() {
        Path name = add(
                "name.jar",
                PluginJar.allocator("a.Name", Sources.provider("a.Name", "String.valueOf(1 / 0)", "1", "")));
        Path none = add("none.jar", PluginJar.allocator("a.None", Sources.provider("a.None", "null", "1", "")));
        Path spi = add("spi.jar", PluginJar.allocator("a.Spi", Sources.provider("a.Spi", "\"spi\"", "1 / 0", "")));
        Path priority = add(
                "priority.jar",
                PluginJar.allocator(
                        "a.Priority",
                        Sources.provider(
                                "a.Priority",
                                "\"p\"",
                                "1",
                                "public int priority() { throw new AssertionError(\"!\"); }")));
        Path shout = add("shout.jar", PluginJar.allocator("a.Shout", Sources.provider("a.Shout", "LOUD Name")));
        Catalog catalog = discover();

        String byZero = "java.lang.ArithmeticException: / by zero";
        assertThat(problems(catalog))
                .containsOnly(
                        Map.entry("a.Name of " + name, "fails in name(): " + byZero),
                        Map.entry("a.None of " + none, "returns null from name()"),
                        Map.entry("a.Spi of " + spi, "fails in spiVersion(): " + byZero),
                        Map.entry("p of " + priority, "fails in priority(): java.lang.AssertionError: !"),
                        Map.entry(
                                "a.Shout of " + shout,
                                "calls itself 'LOUD Name'; a name consists of lower-case letters, digits, '-' and"
                                        + " '_', and begins with a letter or digit"));
        assertThat(catalog.allocator("direct").name()).isEqualTo("direct");
    }

    @Test
    void aServicesFileThatNamesAMissingClassIsTold() {
        Path jar = add("empty.jar", new PluginJar().service(AllocatorProvider.class, "acme.Missing"));

        assertThat(problems(discover()))
                .containsOnly(Map.entry("acme.Missing of " + jar, LOADING + "acme.Missing not found"));
    }

    @Test
    void aBadEntryIsNotTakenForAnotherWhoseNameItBegins() {
        Path jar = add("longer.jar", new PluginJar().service(AllocatorProvider.class, "acme.Missing.Too"));
        add("good.jar", PluginJar.allocator("acme.Missing", Sources.provider("acme.Missing", "good")));

        assertThat(problems(discover()))
                .containsOnly(Map.entry("acme.Missing.Too of " + jar, LOADING + "acme.Missing.Too not found"));
    }

    @Test
    void aClassThatIsNoProviderIsTold() {
        Path jar = add("odd.jar", PluginJar.allocator("acme.Odd", "package acme; public class Odd {}"));

        assertThat(problems(discover()))
                .containsOnly(Map.entry("acme.Odd of " + jar, "fails to load: acme.Odd not a subtype"));
    }

    @Test
    void aServicesFileThatIsNoneIsToldAndItsJarNamed() {
        Path jar = add("scrawl.jar", new PluginJar().service(AllocatorProvider.class, "not a class"));
        add("good.jar", PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good")));
        Catalog catalog = discover();

        String file = "META-INF/services/io.cistern.spi.AllocatorProvider";
        assertThat(problems(catalog))
                .containsOnly(Map.entry(
                        file + " of " + jar,
                        "fails to load: jar:file:" + jar + "!/" + file + ":1: Illegal configuration-file syntax"));
        assertThat(catalog.allocator("good").name()).isEqualTo("good");
    }

    @Test
    void aClassThatAPluginLacksIsTold() {
        String child = Sources.provider("acme.Child", "child").replace("implements", "extends lib.Base implements");
        Path jar = add(
                "half.jar",
                PluginJar.allocator("acme.Child", child)
                        .source("lib.Base", "package lib; public class Base {}")
                        .without("lib.Base"));
        add("good.jar", PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good")));
        Catalog catalog = discover();

        assertThat(problems(catalog))
                .containsOnly(
                        Map.entry("acme.Child of " + jar, "fails to load: java.lang.NoClassDefFoundError: lib/Base"));
        assertThat(catalog.allocator("good").name()).isEqualTo("good");
    }

    @Test
    void aClassFileThatIsNoneIsTold() throws IOException {
        Path classes = Files.createDirectories(folder.resolve("classes/META-INF/services"))
                .resolve("../..")
                .normalize();
        Files.writeString(classes.resolve("META-INF/services/" + AllocatorProvider.class.getName()), "acme.Junk");
        Files.writeString(Files.createDirectories(classes.resolve("acme")).resolve("Junk.class"), "no class at all");
        classPath.add(classes.toUri().toURL());
        Catalog catalog = discover();

        assertThat(problems(catalog)).hasSize(1);
        assertThat(problems(catalog).get("acme.Junk of " + classes))
                .startsWith("fails to load: java.lang.ClassFormatError: Incompatible magic value");
        assertThat(catalog.allocator("direct").name()).isEqualTo("direct");
    }

    @Test
    void openReturningNullIsThePluginsFault() {
        Path jar = add("good.jar", PluginJar.allocator("acme.Good", Sources.provider("acme.Good", "good")));
        AllocatorProvider provider = discover().allocator("good");

        assertRefused(
                () -> provider.open(null), "'good' can't be opened: acme.Good of " + jar + " returns null from open()");
    }

    @Test
    void aClassMissingAtOpenIsThePluginsFault() {
        String source = Sources.provider("acme.Half", "half").replace("return null", "return lib.Base.open()");
        Path jar = add(
                "half.jar",
                PluginJar.allocator("acme.Half", source)
                        .source(
                                "lib.Base",
                                "package lib; public class Base {"
                                        + " public static io.cistern.spi.DeviceAllocator open() { return null; } }")
                        .without("lib.Base"));
        AllocatorProvider provider = discover().allocator("half");

        assertRefused(
                () -> provider.open(null),
                "'half' can't be opened: acme.Half of " + jar
                        + " fails in open(): java.lang.NoClassDefFoundError: lib/Base");
    }

    private Path add(String file, PluginJar plugin) {
        Path jar = plugin.build(folder.resolve(file));
        try {
            classPath.add(jar.toUri().toURL());
        } catch (MalformedURLException e) {
            throw new IllegalStateException(e);
        }
        return jar;
    }

    private Catalog discover() {
        URLClassLoader loader =
                new URLClassLoader(classPath.toArray(URL[]::new), getClass().getClassLoader());
        loaders.add(loader);
        return new LoaderCatalogProvider(() -> new Settings(Map.of(), Map.of()), ProbeTimeout.USUAL).discover(loader);
    }

    private static Map<String, String> problems(Catalog catalog) {
        return catalog.entries().stream()
                .filter(entry -> entry.problem().isPresent())
                .collect(Collectors.toMap(
                        entry -> entry.name() + " of " + entry.origin(),
                        entry -> entry.problem().orElseThrow()));
    }

    private static String home() {
        return PluginJar.home(AllocatorProvider.class).toString();
    }

    private static void assertRefused(ThrowingCallable call, String message) {
        assertThatThrownBy(call).isInstanceOf(ConfigurationException.class).hasMessage(message);
    }
}
