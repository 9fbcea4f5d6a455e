package io.cistern.jcuda;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.mapping;
import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
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
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;
import org.junit.jupiter.api.Test;

/// A change of imports is enough, and the documentation says of which.
class CisternMallocFormTests {
    /// What allocates or frees, in either API.
    private static final Pattern ALLOCATES = Pattern.compile("cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister).*"
            + "|cuMem(Alloc|Free|Host(Alloc|Register|Unregister)|Create|Release|Address|Map|Unmap|Pool(Create|Destroy)).*"
            + "|cu(Array(3D)?Create|ArrayDestroy|MipmappedArray(Create|Destroy))"
            + "|cuCtx(Create|Destroy)");

    private static final String IMPORT = "import static io.cistern.jcuda.CisternMalloc.";

    private static Stream<Method> functions(Class<?> type) {
        return Arrays.stream(type.getMethods())
                .filter(method -> Modifier.isStatic(method.getModifiers()))
                .filter(method -> !Arrays.asList(method.getParameterTypes()).contains(DeviceMemory.class));
    }

    private static String signature(Method method) {
        return method.getReturnType() + Arrays.toString(method.getParameterTypes());
    }

    private static Map<String, Set<String>> signatures(Stream<Method> functions) {
        return functions.collect(groupingBy(Method::getName, mapping(CisternMallocFormTests::signature, toSet())));
    }

    /// An import by name hides all functions of that name that `import static …JCuda.*` would give.
    @Test
    void everyFunctionHasAllSignaturesOfJCudas() {
        Map<String, Set<String>> jcuda =
                signatures(Stream.of(JCuda.class, JCudaDriver.class).flatMap(CisternMallocFormTests::functions));
        Map<String, Set<String>> ours = signatures(functions(CisternMalloc.class));
        assertThat(ours).hasSizeGreaterThan(10);
        ours.forEach((name, signatures) -> {
            if (!Set.of("cudaMallocAsync", "cudaFreeAsync").contains(name)) {
                assertThat(jcuda).as(name).containsEntry(name, signatures);
            }
        });
        assertThat(jcuda).doesNotContainKeys("cudaMallocAsync", "cudaFreeAsync");
    }

    @Test
    void theTableNamesEveryFunctionThatAllocatesOrFrees() throws IOException {
        List<String> rows = Files.readAllLines(Path.of("../../docs/jcuda.md")).stream()
                .filter(line -> line.startsWith("|"))
                .toList();
        assertThat(Stream.of(JCuda.class, JCudaDriver.class)
                        .flatMap(CisternMallocFormTests::functions)
                        .map(Method::getName)
                        .filter(ALLOCATES.asMatchPredicate())
                        .distinct())
                .hasSizeGreaterThan(30)
                .allSatisfy(name -> assertThat(rows).as(name).anyMatch(row -> row.contains("`" + name + "`")));
    }

    @Test
    void thePagesCommandChangesTheImportOfEachFunction() throws IOException {
        String command = Files.readAllLines(Path.of("../../docs/jcuda.md")).stream()
                .filter(line -> line.startsWith("sed "))
                .findFirst()
                .orElseThrow();
        String[] parts = command.split("/", -1);
        String replacement = parts[2].replace("\\2", "$2");
        List<String> ofJCuda = Stream.of(JCuda.class, JCudaDriver.class)
                .flatMap(CisternMallocFormTests::functions)
                .map(Method::getName)
                .toList();
        assertThat(functions(CisternMalloc.class)
                        .map(Method::getName)
                        .filter(ofJCuda::contains)
                        .distinct())
                .hasSizeGreaterThan(10)
                .allSatisfy(name -> assertThat(Stream.of("driver.JCudaDriver", "runtime.JCuda")
                                .map(type -> "import static jcuda." + type + "." + name + ";")
                                .map(line -> line.replaceFirst(parts[1], replacement)))
                        .containsOnly(IMPORT + name + ";"));
    }
}
