package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.jvm.FakeLibrary;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUfunction;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Each function makes the call of JCuda's that has its name and signature.
class CisternCallsTests {
    private static final FakeLibrary FAKE = FakeLibcuda.load().orElse(null);

    static Stream<Method> functions() {
        return Arrays.stream(CisternCalls.class.getMethods())
                .filter(method -> Modifier.isStatic(method.getModifiers()))
                .filter(method -> method.getName().startsWith("cu"));
    }

    @ParameterizedTest
    @MethodSource("functions")
    void theCallIsJCudas(Method ours) throws ReflectiveOperationException {
        assumeTrue(FAKE != null, "no gcc on the PATH");
        Method jcudas = JCudaDriver.class.getMethod(ours.getName(), ours.getParameterTypes());
        Object[] arguments = Stream.of(ours.getParameterTypes())
                .map(CisternCallsTests::argument)
                .toArray();
        assertThat(called(ours, arguments)).isNotZero().isEqualTo(called(jcudas, arguments));
    }

    @ParameterizedTest
    @MethodSource("functions")
    void whatJCudaDoesWithNullsIsUnchanged(Method ours) throws ReflectiveOperationException {
        assumeTrue(FAKE != null, "no gcc on the PATH");
        assumeTrue(!ours.getName().equals("cuLaunchKernel"), "the imitation reads the arguments");
        Object[] arguments = Stream.of(ours.getParameterTypes())
                .map(type -> type.isPrimitive() ? argument(type) : null)
                .toArray();
        Method jcudas = JCudaDriver.class.getMethod(ours.getName(), ours.getParameterTypes());
        assertThat(outcome(ours, arguments)).isEqualTo(outcome(jcudas, arguments));
    }

    private static String outcome(Method function, Object[] arguments) throws IllegalAccessException {
        try {
            return String.valueOf(function.invoke(null, arguments));
        } catch (InvocationTargetException thrown) {
            return String.valueOf(thrown.getCause());
        }
    }

    @Test
    void aKernelGetsTheAddressOfAPointerThatItOnlyReads() {
        assumeTrue(FAKE != null, "no gcc on the PATH");
        Pointer input = CisternCalls.readOnly(JCudaPointers.of(0x7000));
        Pointer parameters = Pointer.to(Pointer.to(input));
        assertThat(CisternCalls.cuLaunchKernel(new CUfunction(), 1, 1, 1, 1, 1, 1, 0, null, parameters, null))
                .isZero();
        assertThat(FAKE.get("argument")).isEqualTo(0x7000);
    }

    private static long called(Method function, Object[] arguments) throws ReflectiveOperationException {
        FAKE.set("called", 0);
        assertThat(function.invoke(null, arguments)).isEqualTo(0);
        return FAKE.get("called");
    }

    private static Object argument(Class<?> type) {
        try {
            return switch (type.getSimpleName()) {
                case "byte" -> (byte) 1;
                case "short" -> (short) 1;
                case "int" -> 1;
                case "long" -> 1L;
                case "Pointer" -> Pointer.to(Pointer.to(new CUdeviceptr()));
                default -> type.getConstructor().newInstance();
            };
        } catch (ReflectiveOperationException other) {
            throw new AssertionError(other);
        }
    }

    @Test
    void thePagesCommandChangesTheImportOfEachFunction() throws IOException {
        String command = Files.readAllLines(Path.of("../../docs/jcuda.md")).stream()
                .filter(line -> line.startsWith("sed ") && line.contains("CisternCalls"))
                .findFirst()
                .orElseThrow();
        String[] parts = command.split("/", -1);
        String replacement = parts[2].replace("\\1", "$1");
        List<String> names = functions().map(Method::getName).distinct().toList();
        assertThat(names)
                .hasSizeGreaterThan(20)
                .allSatisfy(name -> assertThat(("import static jcuda.driver.JCudaDriver." + name + ";")
                                .replaceFirst(parts[1], replacement))
                        .isEqualTo("import static io.cistern.jcuda.CisternCalls." + name + ";"));
    }
}
