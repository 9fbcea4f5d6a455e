package io.cistern.faults;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import io.cistern.jvm.RunningProgram;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// An OutOfMemoryError of the Java heap at any allocation of an allocator reaches the caller as it is; and then no
/// thread hangs, no byte of the device or of a limit is lost, nor a stream, an event or pinned memory, all blocks can
/// be freed, and everything can be closed. Buffers and pools of handles may lose pinned memory, or a block that
/// [io.cistern.DeviceMemory#liveBlocks] shows.
/// All places that allocate are visited, but for those that [need not be][SitesLeftOut].
class HeapFaultTests {
    /// `quick`, `whole` or `pairs`: see [FaultProgram].
    private static final String EXTENT =
            System.getProperty("cistern.stress.faults", Boolean.getBoolean("cistern.stress.long") ? "whole" : "quick");

    /// Those of allocators, graphs, buffers and handles, the classes that a program calls, and what records events.
    private static final String PACKAGES = "io/cistern/internal/,io/cistern/caching/,io/cistern/async/,io/cistern/nccl/"
            + ",io/cistern/graph/,io/cistern/Allocator,io/cistern/Attachments,io/cistern/Currents"
            + ",io/cistern/DeviceMemory,io/cistern/Driver,io/cistern/Listeners"
            + ",io/cistern/MemoryLimit,io/cistern/MemoryPool,io/cistern/ModuleSupport,io/cistern/OpenOptions"
            + ",io/cistern/ObservedCalls,io/cistern/OpenScopes,io/cistern/Pool,io/cistern/Registration,io/cistern/Scope"
            + ",io/cistern/buffers/,io/cistern/handles/"
            + ",io/cistern/observability/MemoryHistory,io/cistern/observability/HistoryEntry"
            + ",io/cistern/pressure/Spill,io/cistern/pressure/HostMemory,io/cistern/pressure/StreamUses"
            + ",io/cistern/pressure/Task,io/cistern/pressure/Arbitration,io/cistern/pressure/BlockOwners"
            + ",io/cistern/pressure/BlockedThreadDetector,io/cistern/pressure/Refusal,io/cistern/pressure/Retry"
            + ",io/cistern/pressure/RoomMakers,io/cistern/pressure/SplitAndRetryOom,io/cistern/pressure/WakeupPolicy";

    /// Each site in the first ones, and in those after a `+` the sites that none before them visits.
    private static final List<String> SPECS = List.of(
            "caching",
            "async",
            "+direct",
            "+vmm",
            "+nccl",
            "+symmetric",
            "+async:release_threshold=adaptive",
            "+async:per_stream=true",
            "+async:small_pool=1MiB",
            "+caching:check=checked",
            "+caching:source=vmm",
            "+caching:source=linear",
            "+caching:source=driver_pool",
            "+caching:per_process_memory_fraction=0.5",
            "+caching:source=linear,per_process_memory_fraction=0.5",
            "+caching:source=vmm,expandable_segments=false",
            "+caching:pytorch=\"backend:cudaMallocAsync,expandable_segments:True\"",
            "+async:pool=default,release_threshold=zero",
            "+async:pool=default",
            "+symmetric:upstream=\"caching:check=paranoid\"",
            "+caching:reuse=wait,fit=tight",
            "+caching:reuse=never,page_size=2MiB",
            "+caching:check=paranoid");

    @TempDir
    private Path folder;

    @Test
    void aFullHeapLeavesEverythingUsable() throws Exception {
        List<String> wrong = new ArrayList<>();
        try (RunningProgram program = program().start()) {
            String line = "";
            while (!line.startsWith("REACHED")) {
                line = program.expect("");
                if (line.startsWith("WRONG") || line.startsWith("BROKEN") || line.startsWith("UNREACHED")) {
                    wrong.add(line);
                }
            }
        }
        assertThat(wrong).isEmpty();
    }

    private JavaProgram program() throws Exception {
        List<String> options = List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-XX:ActiveProcessorCount=2", // fewer counters that virtual threads share
                "-Djdk.virtualThreadScheduler.parallelism=16", // also while threads hang
                "-Djava.io.tmpdir=" + folder,
                "-javaagent:" + agent() + "=" + FaultKind.HEAP + "=" + PACKAGES,
                "--class-path",
                System.getProperty("java.class.path"));
        List<String> arguments = new ArrayList<>(List.of(FaultKind.HEAP.name(), EXTENT));
        arguments.addAll(SPECS);
        return new JavaProgram(FaultProgram.class.getName(), options, arguments, Map.of());
    }

    /// The agent's classes are on the class path already.
    private Path agent() throws Exception {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", FaultAgent.class.getName());
        Path jar = folder.resolve("agent.jar");
        try (OutputStream file = Files.newOutputStream(jar)) {
            new JarOutputStream(file, manifest).close();
        }
        return jar;
    }
}
