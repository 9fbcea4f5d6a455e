package io.cistern.onnxruntime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import ai.onnxruntime.OrtEnvironment;
import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.jvm.ClosingTypes;
import io.cistern.jvm.Cycles;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// How an allocator gets into ONNX Runtime and out of it: the real library without CUDA, and a fake one.
class RegistrationTests {
    @TempDir
    private Path folder;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void theRealLibraryWithoutCudaIsRefusedWithWhatToDo() {
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> OnnxMemory.register(OrtEnvironment.getEnvironment(), memory))
                .withMessageContaining("has no CUDA provider")
                .withMessageContaining("onnxruntime_gpu");
    }

    @Test
    void aSimulatedGpuIsRefusedWithWhatToDo() {
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> OnnxMemory.requireReal(memory))
                .withMessageContaining("simulated")
                .withMessageContaining("-Dcistern.driver=cuda");
    }

    @Test
    void theRealLibraryHasTheFunctionsWhereTheyAreLookedFor() {
        String version = OrtEnvironment.getEnvironment().getVersion();
        OnnxApi api = OnnxApi.find();
        assertThat(api.versionText()).isEqualTo(version);
        assertThat(api.allocatorVersion()).isEqualTo(OnnxApi.SHRINK_VERSION);
        assertThat(api.keyValuePairs(Map.of("InUse", 1L)).address()).isNotZero();
        assertThat(api.memoryInfo(OnnxApi.CUDA, 0).address()).isNotZero();
    }

    @Test
    void theRealLibraryTakesAnAllocatorOnceADevice() {
        assertThat(OrtEnvironment.getEnvironment()).isNotNull();
        OnnxApi api = OnnxApi.find();
        try (OnnxMemory _ = OnnxMemory.register(api, memory, 0);
                OnnxMemory _ = OnnxMemory.register(api, memory, 1)) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> OnnxMemory.register(api, memory, 0))
                    .withMessageContaining("already");
        }
        OnnxMemory.register(api, memory, 0).close();
    }

    @Test
    void anOlderLibraryIsRefusedWithItsVersion() {
        FakeOnnxRuntime old = new FakeOnnxRuntime(folder, "-DNEWEST=22");
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(old::api)
                .withMessageContaining("1.22.0")
                .withMessageContaining("1.23");
    }

    @Test
    void aTableThatIsNotTheKnownOneIsRefused() {
        FakeOnnxRuntime other = new FakeOnnxRuntime(folder, "-DOTHER_TABLE");
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(other::api)
                .withMessageContaining("function table");
    }

    @Test
    void anAllocatorOfAnOlderInterfaceHasNoShrink() {
        FakeOnnxRuntime fake = new FakeOnnxRuntime(folder, "-DNEWEST=24");
        try (OnnxMemory _ = OnnxMemory.register(fake.api(), memory, 0)) {
            assertThat(fake.shrink()).isEqualTo(-1);
        }
    }

    @Test
    void closingLeavesNothingInTheLibrary() {
        FakeOnnxRuntime fake = new FakeOnnxRuntime(folder);
        OnnxApi api = fake.api();
        OnnxMemory first = OnnxMemory.register(api, memory, 0);
        assertThatIllegalStateException().isThrownBy(() -> OnnxMemory.register(api, memory, 0));
        assertThat(fake.environmentReferences()).isOne();
        first.close();
        first.close();
        assertThat(fake.environmentReferences()).isZero();
        assertThat(fake.liveStatuses()).isZero();
        assertThatIllegalStateException().isThrownBy(() -> first.open(SessionSettings.named("late")));
    }

    /// As several contexts of Spring do: see docs/spring-boot.md.
    @Test
    void theOneThatIsAttachedToADeviceMemoryIsSharedAndClosesWithIt() {
        FakeOnnxRuntime fake = new FakeOnnxRuntime(folder);
        OnnxApi api = fake.api();
        OnnxMemory first =
                memory.moduleSupport().attachment(OnnxMemory.class, device -> OnnxMemory.register(api, device, 0));
        assertThat(memory.moduleSupport().attachment(OnnxMemory.class, device -> OnnxMemory.register(api, device, 0)))
                .isSameAs(first);
        assertThat(fake.environmentReferences()).isOne();
        memory.close();
        assertThat(fake.environmentReferences()).isZero();
    }

    @Test
    void aDeviceThatIsNotThereIsRefused() {
        FakeOnnxRuntime fake = new FakeOnnxRuntime(folder);
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> OnnxMemory.register(fake.api(), memory, 2));
        assertThat(fake.environmentReferences()).isZero();
    }

    @Test
    void closedRegistrationsLeaveNothing() throws Exception {
        assertThat(ClosingTypes.beside(OnnxMemory.class)).containsExactly(OnnxMemory.class, SessionMemory.class);
        assertThat(OrtEnvironment.getEnvironment()).isNotNull();
        OnnxApi api = OnnxApi.find();
        Cycles.assertNothingStays(10_000, () -> {
            try (OnnxMemory onnx = OnnxMemory.register(api, memory, 0);
                    SessionMemory session = onnx.open(SessionSettings.named("session"))) {
                assertThat(session.figures()).isNotNull();
            }
        });
    }

    /// The session of the first memory still has its weights when the second one serves.
    @Test
    void aTableServesOneMemoryAfterTheOther() {
        FakeOnnxRuntime fake = new FakeOnnxRuntime(folder);
        OnnxApi api = fake.api();
        long weights;
        try (OnnxMemory first = OnnxMemory.register(api, memory, 0)) {
            weights = fake.allocate(1000);
            assertThat(first.figures().liveBlocks()).isOne();
        }
        assertThat(fake.allocate(1000)).as("after the close").isZero();
        try (OnnxMemory second = OnnxMemory.register(api, memory, 0)) {
            long block = fake.allocate(2000);
            assertThat(second.figures().usedBytes()).isEqualTo(2000);
            fake.free(weights);
            fake.free(block);
            assertThat(second.figures().liveBlocks()).isZero();
            assertThat(second.lastFailure()).isEmpty();
        }
        assertThat(memory.liveBlocks()).isEmpty();
    }

    /// The second memory would not know the block.
    @Test
    void anAllocationDuringTheCloseLeavesNoBlock() {
        FakeOnnxRuntime fake = new FakeOnnxRuntime(folder);
        OnnxApi api = fake.api();
        OnnxMemory first = OnnxMemory.register(api, memory, 0);
        AtomicReference<OnnxMemory> second = new AtomicReference<>();
        try (Registration _ = memory.listeners().onEvent(event -> {
            if (event instanceof MemoryEvent.Allocated) {
                first.close();
                second.set(OnnxMemory.register(api, memory, 0));
            }
        })) {
            fake.free(fake.allocate(1000));
        }
        second.get().close();
        assertThat(second.get().lastFailure()).isEmpty();
        assertThat(first.figures().liveBlocks()).isZero();
        assertThat(first.lastFailure().orElseThrow()).hasMessageContaining("after its OnnxMemory was closed");
        assertThat(memory.liveBlocks()).isEmpty();
    }
}
