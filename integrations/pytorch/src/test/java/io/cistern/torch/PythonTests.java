package io.cistern.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The Python package over the library, in a Python process with a JVM on the simulated GPU; PyTorch is a fake.
final class PythonTests {
    private static final long MIB = 1 << 20;
    private static final String CAP = "expandable_segments:True,per_process_memory_fraction:0.8";

    @BeforeAll
    static void requireTools() {
        PythonProcess.require();
    }

    @Test
    void allocationsAreServedAndCounted() throws Exception {
        assertThat(run("allocates"))
                .containsExactly(
                        "False", "True [True, True, True, False]", "3 " + (3 * MIB + 4097) + " True", "0 3 0", "True");
    }

    @Test
    void threadsThatJavaDoesNotKnowAllocate() throws Exception {
        assertThat(run("threads")).containsExactly("[] 2000 2000");
    }

    @Test
    void aFractionOfTheDeviceIsALimitThatCountsWhatIsAlive() throws Exception {
        assertThat(run("fraction"))
                .satisfiesExactly(
                        line -> assertThat(line).isEqualTo("None"),
                        line -> assertThat(line)
                                .contains(
                                        "limit of " + 512 * MIB + " bytes (512 MiB), " + 300 * MIB + " of them in use"),
                        line -> assertThat(line).isEqualTo("True"));
    }

    @Test
    void aLackOfMemoryIsNullWithTheReasonAndTheNextRequestIsServed() throws Exception {
        assertThat(run("out_of_memory"))
                .satisfiesExactly(
                        line -> assertThat(line).isEqualTo("None"),
                        line -> assertThat(line).startsWith("out of memory on device 0: " + (2L << 30) + " bytes"),
                        line -> assertThat(line).isEqualTo("True"));
    }

    @Test
    void usesElsewhereAreRecordedAndFailedFreesAreLoggedOnce() throws Exception {
        assertThat(run("streams"))
                .satisfiesExactlyInAnyOrder(
                        line -> assertThat(line).isEqualTo("''"),
                        line -> assertThat(line).contains("a free failed; later failures of this kind are not logged"),
                        line -> assertThat(line).isEqualTo("1"),
                        line -> assertThat(line).contains("TorchCommands"));
    }

    @Test
    void snapshotsAreWrittenForPeopleAndForPyTorchsViewer(@TempDir Path folder) throws Exception {
        assertThat(run("snapshots", folder.toString()))
                .satisfiesExactly(
                        line -> assertThat(line).isEqualTo("True [" + 3 * MIB + "] True"),
                        line -> assertThat(line)
                                .startsWith("the snapshot can't be written to " + folder.resolve("none/x.json")));
    }

    @Test
    void peaksBeginAgain() throws Exception {
        assertThat(run("peaks")).containsExactly(8 * MIB + " 0");
    }

    @Test
    void aForkedChildIsRefusedAndFreesNothing() throws Exception {
        assertThat(run("forks"))
                .satisfiesExactly(
                        line -> assertThat(line).isEqualTo("None False True"),
                        line -> assertThat(line)
                                .contains("was forked from process")
                                .contains("spawn"),
                        line -> assertThat(line).contains("was forked from process"),
                        line -> assertThat(line).isEqualTo("1 False"));
    }

    @Test
    void whatCantBeFollowedIsRefusedWithItsReasonAndCanBeCorrected() throws Exception {
        assertThat(run("refusals"))
                .satisfiesExactly(
                        line -> assertThat(line).contains("is not enabled"),
                        line -> assertThat(line).contains("'cachin'").contains("caching"),
                        line -> assertThat(line).contains("'pagesize'").contains("page_size"),
                        line -> assertThat(line).contains("'cistern.limt'").contains("cistern.limit"),
                        line -> assertThat(line).contains("already opened the device memory with the settings {}"),
                        line -> assertThat(line).contains("several lines"),
                        line -> assertThat(line).contains("has already used the GPU"),
                        line -> assertThat(line).contains("has no set_record_stream_fn"),
                        line -> assertThat(line).contains("is enabled in this process with caching"),
                        line -> assertThat(line).isEqualTo("True"));
    }

    @Test
    void aPyTorchWithoutCudaIsRefused() throws Exception {
        assertThat(run("without_cuda")).singleElement().asString().contains("built without CUDA");
    }

    @Test
    void aMissingJvmIsRefused() throws Exception {
        assertThat(PythonProcess.run(Map.of("CISTERN_JAVA_HOME", "/nowhere"), "starts"))
                .singleElement()
                .asString()
                .contains("no Java runtime in /nowhere", "set CISTERN_JAVA_HOME");
        assertThat(PythonProcess.run(Map.of("CISTERN_JAVA_HOME", "", "JAVA_HOME", ""), "starts"))
                .singleElement()
                .asString()
                .contains("CISTERN_JAVA_HOME and JAVA_HOME are not set");
    }

    @Test
    void aMissingDistributionIsRefused() throws Exception {
        assertThat(PythonProcess.run(Map.of("CISTERN_HOME", "/nowhere"), "starts"))
                .singleElement()
                .asString()
                .contains("there is no /nowhere/lib/native/libcistern_torch.so", "CISTERN_HOME");
    }

    @Test
    void missingJarsAreRefused() throws Exception {
        assertThat(PythonProcess.run(Map.of("CISTERN_CLASSPATH", ""), "starts"))
                .singleElement()
                .asString()
                .contains("Cistern is not on the JVM's class path", "CISTERN_CLASSPATH");
    }

    @Test
    void anOptionThatTheJvmRefusesIsToldOf() throws Exception {
        assertThat(PythonProcess.run(Map.of("CISTERN_JAVA_OPTS", "-Xnosuch"), "starts"))
                .anySatisfy(line -> assertThat(line).contains("-Xnosuch"))
                .anySatisfy(line -> assertThat(line).contains("the JVM can't be started"));
    }

    @Test
    void aSimulatedGpuThatNobodyAskedForIsRefused() throws Exception {
        assumeTrue(Files.notExists(Path.of("/dev/nvidiactl")), "there is a GPU");
        assertThat(PythonProcess.run(Map.of("CISTERN_DRIVER", "auto"), "starts"))
                .anySatisfy(line -> assertThat(line).contains("PyTorch can't use the simulated GPU"));
    }

    @Test
    void withoutThePackageTheFirstAllocationStartsWhatIsConfigured() throws Exception {
        assertThat(PythonProcess.run(Map.of("CISTERN_ALLOCATOR", "caching:fit=tight"), "by_hand"))
                .singleElement()
                .asString()
                .startsWith("True")
                .contains("caching:fit=tight");
    }

    @Test
    void theStringForPyTorchsOwnAllocatorTakesEffect() throws Exception {
        Map<String, String> both =
                Map.of("PYTORCH_CUDA_ALLOC_CONF", CAP, "PYTORCH_ALLOC_CONF", "expandable_segments:False");
        assertThat(PythonProcess.run(Map.of("PYTORCH_ALLOC_CONF", CAP), "configured"))
                .singleElement()
                .asString()
                .startsWith("True caching:pytorch=\"" + CAP + "\"");
        assertThat(PythonProcess.run(both, "configured", "caching:fit=tight"))
                .anySatisfy(line -> assertThat(line).contains("PYTORCH_ALLOC_CONF has no effect: PyTorch reads"))
                .anySatisfy(line -> assertThat(line).startsWith("True caching:fit=tight,pytorch=\"" + CAP + "\""));
        assertThat(PythonProcess.run(
                        Map.of("PYTORCH_ALLOC_CONF", CAP, "CISTERN_ALLOCATOR", "caching:fit=tight"), "configured"))
                .singleElement()
                .asString()
                .startsWith("True caching:fit=tight,pytorch=\"" + CAP + "\"");
    }

    @Test
    void whatHasNoEffectIsWarnedOf() throws Exception {
        assertThat(PythonProcess.run(Map.of("PYTORCH_ALLOC_CONF", CAP), "configured", "direct"))
                .anySatisfy(
                        line -> assertThat(line).contains("PYTORCH_ALLOC_CONF has no effect: the allocator is direct"))
                .anySatisfy(line -> assertThat(line).startsWith("True direct"));
        Map<String, String> both =
                Map.of("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:0.5,expandable_segments:True");
        assertThat(PythonProcess.run(both, "configured", "caching", "per_process_memory_fraction"))
                .anySatisfy(line -> assertThat(line)
                        .contains("on options that caching:per_process_memory_fraction=1" + " sets itself"))
                .anySatisfy(line -> assertThat(line)
                        .startsWith("True caching:per_process_memory_fraction=1,pytorch=\"expandable_segments:True\""));
        assertThat(PythonProcess.run(Map.of("PYTORCH_HIP_ALLOC_CONF", CAP), "configured"))
                .anySatisfy(line -> assertThat(line).contains("PYTORCH_HIP_ALLOC_CONF has no effect"));
    }

    @Test
    void aStringThatPyTorchWouldRefuseIsRefusedByItsName() throws Exception {
        assertThat(PythonProcess.run(Map.of("PYTORCH_ALLOC_CONF", "expandable_segments"), "starts"))
                .singleElement()
                .asString()
                .contains("PYTORCH_ALLOC_CONF", "'expandable_segments'", "key:value");
    }

    private static Iterable<String> run(String... arguments) throws Exception {
        return PythonProcess.run(Map.of(), arguments);
    }
}
