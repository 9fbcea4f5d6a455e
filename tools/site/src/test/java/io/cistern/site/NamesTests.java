package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.settings.Setting;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Settings and options that pages name are those of the program.
final class NamesTests {
    private static final Repository REPOSITORY = AllPages.REPOSITORY;
    private static final Pattern SETTING =
            Pattern.compile("(?<![\\w./-])(?:-D)?cistern\\.([a-z]+(?:\\.[a-zA-Z0-9]+)*)(?![\\w.*]*[(/])");
    private static final Pattern METER = Pattern.compile("\"cistern\\.([a-z.]+)\"");
    private static final Pattern VARIABLE = Pattern.compile("\\bCISTERN_([A-Z]+(?:_[A-Z0-9]+)*)\\b");
    private static final Pattern SPEC = Pattern.compile("(?<![\\w:.-])(\\w+):((?:\\w+=[^,`\"' |)]+,?)+)");

    private static final Pattern SAME_OPTIONS =
            Pattern.compile("The options of \\[`(\\w+)`]\\(#\\w+\\)(?:, without (`\\w+`))?");

    /// Of tests and builds; and one that is misspelt on purpose.
    private static final Set<String> OTHERS = Set.of(
            "testkit.combinations.row",
            "testkit.combinations.seconds",
            "testkit.combinations.seed",
            "testkit.seed",
            "testkit.races",
            "testkit.sessions",
            "testkit.soak.seconds",
            "testkit.texts",
            "testkit.driver",
            "random.operations",
            "random.seed",
            "docs.write",
            "metrics.slow",
            "unpublished",
            "alocator");

    private static final Set<String> OTHER_VARIABLES =
            Set.of("CLASSPATH", "JAVA_OPTS", "JAVA_HOME", "HOME", "TORCH", "VISIBLE", "SERVICE_HOST");

    /// Of Micrometer, as its module names them.
    private static final Set<String> METERS = meters();

    private static final List<Pattern> KEYS = Arrays.stream(Setting.values())
            .map(setting -> setting.key()
                    .replace(".", "\\.")
                    .replace("\\.N\\.", "\\.(?:N|\\d+)\\.")
                    .replace("NAME", "\\w+"))
            .map(Pattern::compile)
            .toList();

    private static Set<String> meters() {
        try (Stream<Path> files = Files.walk(REPOSITORY.root().resolve("integrations/micrometer/src/main/java"))) {
            Set<String> meters = new TreeSet<>();
            for (Path file :
                    files.filter(each -> each.toString().endsWith(".java")).toList()) {
                METER.matcher(Files.readString(file)).results().forEach(name -> meters.add(name.group(1)));
            }
            return meters;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static List<Path> files() {
        return AllPages.files().stream()
                .filter(file -> !file.endsWith("CHANGELOG.md")) // it names what is gone
                .toList();
    }

    @ParameterizedTest
    @MethodSource("files")
    void settingsAreThoseOfTheProgram(Path file) throws IOException {
        String text = Files.readString(REPOSITORY.root().resolve(file));
        assertThat(unknownSettings(text)).isEmpty();
        assertThat(unknownVariables(text)).isEmpty();
    }

    @ParameterizedTest
    @MethodSource("files")
    void optionsAreThoseOfTheirAllocator(Path file) throws IOException {
        assertThat(unknownOptions(Files.readString(REPOSITORY.root().resolve(file))))
                .isEmpty();
    }

    @Test
    void aSettingAndAnOptionThatDoNotExistAreFound() throws IOException {
        assertThat(unknownSettings("`-Dcistern.allocater=async`, `cistern.limit`, `cistern.device.1.limit`"))
                .containsExactly("cistern.allocater");
        assertThat(unknownVariables("CISTERN_LIMITS=1")).containsExactly("CISTERN_LIMITS");
        assertThat(unknownOptions("`caching:fit=tight,page_sise=2MiB`")).containsExactly("caching:page_sise");
        assertThat(unknownOptions("`limit:bytes=8GiB,upstream=caching`")).isEmpty();
        assertThat(unknownOptions("`caching:upstream=direct`")).containsExactly("caching:upstream");
    }

    private static Set<String> unknownSettings(String text) {
        return SETTING.matcher(text)
                .results()
                .map(match -> match.group(1))
                .filter(key -> !OTHERS.contains(key) && !METERS.contains(key) && !isSetting("cistern." + key))
                .map(key -> "cistern." + key)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static boolean isSetting(String key) {
        return KEYS.stream().anyMatch(each -> each.matcher(key).matches());
    }

    private static Set<String> unknownVariables(String text) {
        return VARIABLE.matcher(text)
                .results()
                .filter(match -> !OTHER_VARIABLES.contains(match.group(1)))
                .filter(match -> !isSetting(
                        match.group().toLowerCase(java.util.Locale.ROOT).replace('_', '.')))
                .map(MatchResult::group)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static Set<String> unknownOptions(String text) throws IOException {
        String page = Files.readString(REPOSITORY.root().resolve("docs/options.md"));
        Set<String> unknown = new TreeSet<>();
        Matcher spec = SPEC.matcher(text);
        while (spec.find()) {
            String section = section(page, spec.group(1));
            if (section.isEmpty()) {
                continue; // no allocator's name
            }
            Arrays.stream(spec.group(2).split(","))
                    .map(option -> option.substring(0, Math.max(0, option.indexOf('='))))
                    .filter(key -> !key.isEmpty() && !section.contains("| `" + key + "` |"))
                    .filter(key -> !key.equals("upstream") || !adaptors(page).contains("`" + spec.group(1) + "`"))
                    .forEach(key -> unknown.add(spec.group(1) + ":" + key));
        }
        return unknown;
    }

    /// Returns the sentence that names the adaptors, which all require an upstream.
    private static String adaptors(String page) {
        return page.lines()
                .filter(line -> line.startsWith("Adaptors require `upstream`"))
                .findFirst()
                .orElseThrow();
    }

    /// All parts of the page about a name: an allocator, a segment source; with the part that they refer to.
    private static String section(String page, String name) {
        String own = Arrays.stream(page.split("(?m)^## "))
                .filter(part -> part.startsWith("`" + name + "`"))
                .collect(Collectors.joining());
        Matcher other = SAME_OPTIONS.matcher(own);
        if (!other.find() || other.group(1).equals(name)) {
            return own;
        }
        String table = section(page, other.group(1));
        return other.group(2) == null ? own + table : own + table.replace("| " + other.group(2) + " |", "");
    }
}
