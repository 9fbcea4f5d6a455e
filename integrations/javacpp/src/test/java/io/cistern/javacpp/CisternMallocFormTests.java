package io.cistern.javacpp;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.mapping;
import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.bytedeco.cuda.global.cudart;
import org.junit.jupiter.api.Test;

/// Added imports are enough, and the documentation says of which.
class CisternMallocFormTests {
    private static final Path PAGE = Path.of("../../docs/javacpp.md");
    private static final String IMPORT = "import static io.cistern.javacpp.CisternMalloc.";

    /// What allocates or frees memory of a device.
    private static final Pattern ALLOCATES = Pattern.compile("cuda(Malloc|Free)\\w*");

    private static Stream<Method> functions(Class<?> type) {
        return Arrays.stream(type.getMethods()).filter(method -> Modifier.isStatic(method.getModifiers()));
    }

    private static Map<String, Set<String>> signatures(Class<?> type) {
        return functions(type)
                .collect(groupingBy(
                        Method::getName,
                        mapping(
                                method -> method.getReturnType() + Arrays.toString(method.getParameterTypes()),
                                toSet())));
    }

    /// An import by name hides all functions of that name that `import static …cudart.*` would give.
    @Test
    void everyFunctionHasAllSignaturesOfThePresets() {
        Map<String, Set<String>> presets = signatures(cudart.class);
        Map<String, Set<String>> ours = signatures(CisternMalloc.class);
        assertThat(ours).hasSize(8);
        ours.forEach((name, signatures) -> assertThat(presets).as(name).containsEntry(name, signatures));
    }

    @Test
    void theTableNamesEveryFunctionThatAllocatesOrFrees() throws IOException {
        List<String> rows = Files.readAllLines(PAGE).stream()
                .filter(line -> line.startsWith("|"))
                .toList();
        assertThat(functions(cudart.class)
                        .map(Method::getName)
                        .filter(ALLOCATES.asMatchPredicate())
                        .distinct())
                .hasSizeGreaterThan(12)
                .allSatisfy(name -> assertThat(rows).as(name).anyMatch(row -> row.contains("`" + name + "`")));
    }

    @Test
    void thePageHasTheImportOfEachFunction() throws IOException {
        List<String> imports = Files.readAllLines(PAGE).stream()
                .filter(line -> line.startsWith(IMPORT))
                .map(line -> line.substring(IMPORT.length(), line.indexOf(';')))
                .toList();
        assertThat(imports)
                .containsExactlyInAnyOrderElementsOf(
                        functions(CisternMalloc.class).map(Method::getName).collect(toSet()));
    }
}
