package io.cistern.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.internal.options.SpecOptions;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.SpecOption;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The page of all options is what the providers declare, and they declare what they ask for.
class OptionsPageTests {
    private static final Path PAGE = Path.of("..", "..", "docs", "options.md");
    private static final int MANY_ROWS = 6;
    private static final String HEAD = """
            # Options

            <!-- Made by OptionsPageTests from what providers declare. With -Dcistern.docs.write=true it writes the page. -->

            The options of a spec: `caching:fit=tight,max_bytes=8GiB`. A list is in brackets, a spec within a spec in quotes:
            `limit:bytes=8GiB,upstream="caching:fit=tight"`. `cistern options NAME` prints the options of one allocator, also
            of a plug-in. Bytes are written [as in settings](settings.md).

            A segment source is an allocator too: `vmm:handle=fabric` is `caching:source="vmm:handle=fabric"`. In code,
            `new CachingSpec().with(CachingOption.FIT, PageFit.TIGHT).spec()` makes a spec.
            """;

    @Test
    void theReferencePageIsUpToDate() throws IOException {
        if (Boolean.getBoolean("cistern.docs.write")) {
            Files.writeString(PAGE, page());
        }
        assertThat(PAGE).hasContent(page());
    }

    @Test
    void everyProviderOfOursDeclaresItsOptions() {
        Catalog catalog = Catalog.discover(List.of(), List.of());
        List<String> without = OptionsCommand.usable(catalog).stream()
                .filter(entry -> OptionsCommand.options(entry, catalog).isEmpty())
                .map(Catalog.Entry::name)
                .sorted()
                .toList();
        assertThat(without)
                .containsExactly(
                        "direct", "linear", "managed", "nccl", "pages", "pytorch-expandable", "pytorch-native");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "caching|caching:no_such=1",
                "async|async:no_such=1",
                "symmetric|symmetric:no_such=1",
                "aligned|aligned:alignment=2MiB,upstream=direct,no_such=1",
                "confined|confined:upstream=direct,no_such=1",
                "events|events:threshold=1GiB,upstream=direct,no_such=1",
                "limit|limit:bytes=1GiB,upstream=direct,no_such=1",
                "prefetch|prefetch:upstream=direct,no_such=1",
                "retry|retry:upstream=direct,no_such=1",
                "statistics|statistics:upstream=direct,no_such=1",
                "tracking|tracking:upstream=direct,no_such=1",
                "arbiter|arbiter:upstream=direct,no_such=1"
            })
    void allThatAnAllocatorAsksForIsDeclared(String name, String spec) {
        Catalog catalog = Catalog.discover(List.of(), List.of());
        List<String> declared =
                catalog.allocator(name).options().stream().map(SpecOption::key).toList();
        assertThat(asked(catalog, name, spec)).isSubsetOf(declared);
    }

    @Test
    void allThatASourceAsksForIsDeclared() {
        Catalog catalog = Catalog.discover(List.of(), List.of());
        for (String name : List.of("vmm", "driver_pool")) {
            List<String> declared = new ArrayList<>(
                    catalog.source(name).options().stream().map(SpecOption::key).toList());
            declared.add("per_stream"); // asked for to be refused
            assertThat(asked(catalog, name, "caching:source=\"" + name + ":no_such=1\""))
                    .isSubsetOf(declared);
        }
    }

    /// Returns the options that an allocator or a source reads while it opens, until an unknown one is refused.
    private static Set<String> asked(Catalog catalog, String name, String spec) {
        SpecOptions[] read = new SpecOptions[1];
        Catalog watched = proxy(Catalog.class, catalog, (method, arguments, answer) -> {
            boolean isIts = arguments != null && List.of(name).equals(List.of(arguments));
            return isIts ? watched(method.getReturnType(), answer.call(), read) : answer.call();
        });
        try (CudaDriver driver = SimulatedGpu.builder().devices(1).build();
                DeviceMemory memory =
                        DeviceMemory.builder(driver).catalog(watched).open()) {
            assertThatThrownBy(() -> memory.open(spec)).hasMessageContaining("no option 'no_such'");
        }
        return read[0].asked();
    }

    private static Object watched(Class<?> service, Object provider, SpecOptions[] read) {
        return proxy(service, provider, (method, arguments, answer) -> {
            if (method.getName().equals("open")) {
                read[0] = (SpecOptions) ((AllocatorContext) arguments[0]).options();
            }
            return answer.call();
        });
    }

    private interface Watch {
        Object called(Method method, Object[] arguments, Callable<?> answer) throws Exception;
    }

    private static <T> T proxy(Class<T> type, Object around, Watch watch) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (_, method, arguments) -> watch.called(method, arguments, () -> {
                    try {
                        return method.invoke(around, arguments);
                    } catch (InvocationTargetException e) {
                        throw (RuntimeException) e.getCause();
                    }
                })));
    }

    private static String page() {
        Catalog catalog = Catalog.discover(List.of(), List.of());
        Map<String, List<String>> tables = new LinkedHashMap<>();
        List<Catalog.Entry> entries = OptionsCommand.usable(catalog).stream()
                .sorted(Comparator.comparing(Catalog.Entry::kind)
                        .thenComparing(Catalog.Entry::priority, Comparator.reverseOrder())
                        .thenComparing(Catalog.Entry::name))
                .toList();
        StringBuilder page = new StringBuilder(HEAD);
        page.append("\nAdaptors require `upstream`, the spec of the allocator that they wrap: ");
        page.append(names(entries, entry -> isAdaptor(entry, catalog))).append(".\nThese have no options: ");
        page.append(names(
                        entries, entry -> OptionsCommand.options(entry, catalog).isEmpty()))
                .append(".\n");
        for (Catalog.Entry entry : entries) {
            List<? extends SpecOption<?>> own = OptionsCommand.options(entry, catalog).stream()
                    .filter(option -> !isUpstream(option))
                    .toList();
            if (!own.isEmpty()) {
                page.append("\n## `").append(entry.name()).append('`');
                page.append(entry.kind() == Catalog.Kind.SOURCE ? ", a segment source\n\n" : "\n\n");
                page.append(table(own, entry.name(), tables));
            }
        }
        return page.toString();
    }

    private static String names(List<Catalog.Entry> entries, Predicate<Catalog.Entry> which) {
        return entries.stream()
                .filter(which)
                .map(entry -> "`" + entry.name() + "`")
                .distinct()
                .collect(Collectors.joining(", "));
    }

    private static boolean isAdaptor(Catalog.Entry entry, Catalog catalog) {
        return OptionsCommand.options(entry, catalog).stream().anyMatch(OptionsPageTests::isUpstream);
    }

    private static boolean isUpstream(SpecOption<?> option) {
        return option.key().equals("upstream") && option.usual().equals("required");
    }

    /// The table of some options. One that a table above contains is not repeated.
    private static String table(List<? extends SpecOption<?>> options, String name, Map<String, List<String>> above) {
        String table = SpecOption.table(options);
        List<String> rows = table.lines().toList();
        for (Map.Entry<String, List<String>> other : above.entrySet()) {
            if (rows.size() >= MANY_ROWS && other.getValue().containsAll(rows)) {
                String without = other.getValue().stream()
                        .filter(row -> !rows.contains(row))
                        .map(row -> row.split("\\|")[1].strip())
                        .collect(Collectors.joining(", "));
                return "The options of [`" + other.getKey() + "`](#" + other.getKey() + ")"
                        + (without.isEmpty() ? ".\n" : ", without " + without + ".\n");
            }
        }
        above.putIfAbsent(name, rows);
        return table;
    }
}
