package io.cistern.simulated;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.jvm.JavaProgram;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What a program gets that has the simulated GPU on its class path, where the real driver can't be used.
final class DriverChoiceTests {
    private static final String SIMULATED = "simulated GPU, driver API 13.0";

    @TempDir
    private Path folder;

    /// Opens a driver twice.
    static final class OpensTwice {
        public static void main(String[] arguments) {
            for (int i = 0; i < 2; i++) {
                try (CudaDriver driver = CudaDrivers.openBest()) {
                    System.out.println(driver.description());
                } catch (RuntimeException refused) {
                    System.out.println(refused.getMessage());
                }
            }
        }
    }

    @Test
    void aSimulationThatNobodyAskedForIsWarnedOfOnce() throws Exception {
        List<String> printed = open("--enable-native-access=ALL-UNNAMED", "-Dcistern.driver=auto");

        assertThat(printed).filteredOn(SIMULATED::equals).hasSize(2);
        assertThat(printed)
                .filteredOn(line -> line.contains("SIMULATED GPU"))
                .singleElement()
                .asString()
                .contains("(cuda: ", "set cistern.driver=simulated");
    }

    @Test
    void aSimulationThatWasAskedForIsQuiet() throws Exception {
        assertThat(open("--enable-native-access=ALL-UNNAMED", "-Dcistern.driver=simulated"))
                .containsExactly(SIMULATED, SIMULATED);
    }

    @Test
    void deniedNativeAccessIsAnErrorThatSaysHowToAllowIt() throws Exception {
        assertThat(open("--illegal-native-access=deny", "-Dcistern.driver=auto"))
                .hasSize(2)
                .allSatisfy(line -> assertThat(line)
                        .contains("native access is denied", "--enable-native-access=ALL-UNNAMED")
                        .doesNotContain(SIMULATED));
    }

    @Test
    void aNamedLibraryThatIsNotThereIsAnError() throws Exception {
        assertThat(open(
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dcistern.driver=auto",
                        "-Dcistern.cuda.library=/none/libcuda.so"))
                .hasSize(2)
                .allSatisfy(line -> assertThat(line)
                        .contains("property cistern.cuda.library: the library /none/libcuda.so can't be loaded"));
    }

    @Test
    void aFatJarWithoutMergedServiceFilesIsAnErrorWithTheCure() throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(new OneServiceFile(before, folder));
        String driver = System.setProperty("cistern.driver", "auto");
        try {
            assertThatIllegalStateException()
                    .isThrownBy(CudaDrivers::openBest)
                    .withMessageContaining("the class of the driver 'cuda' is here, but META-INF/services/")
                    .withMessageContaining("must be merged");
        } finally {
            System.getProperties().compute("cistern.driver", (key, auto) -> driver);
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    /// A JVM that sees no GPU, if there is one.
    private static List<String> open(String... options) throws IOException, InterruptedException {
        List<String> all = Stream.concat(Stream.of("-cp", System.getProperty("java.class.path")), Stream.of(options))
                .toList();
        return new JavaProgram(OpensTwice.class.getName(), all, List.of(), Map.of("CUDA_VISIBLE_DEVICES", "")).run();
    }

    /// Has all classes and, as a fat JAR that was made carelessly, the last of several service files of one name.
    private static final class OneServiceFile extends ClassLoader {
        private static final String NAME = "META-INF/services/" + CudaDriverProvider.class.getName();
        private final URL file;

        OneServiceFile(ClassLoader parent, Path folder) throws IOException {
            super(parent);
            file = Files.writeString(folder.resolve("services"), SimulatedDriverProvider.class.getName())
                    .toUri()
                    .toURL();
        }

        @Override
        public Enumeration<URL> getResources(String name) throws IOException {
            return name.equals(NAME) ? Collections.enumeration(List.of(file)) : super.getResources(name);
        }
    }
}
