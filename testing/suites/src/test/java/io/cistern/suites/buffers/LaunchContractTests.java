package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.CudaStream;
import io.cistern.buffers.CudaFunction;
import io.cistern.buffers.CudaModule;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Modules.Extent;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.cuda.nvrtc.NvrtcException;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/// Modules, functions and kernel launches.
abstract class LaunchContractTests extends BufferFixture {
    private static final String VECTOR_ADD = """
            extern "C" __global__ void vector_add(const float *x, const float *y, float *sum, int count) {
                int i = blockIdx.x * blockDim.x + threadIdx.x;
                if (i < count) sum[i] = x[i] + y[i];
            }
            """;

    LaunchContractTests(BufferContract suite) {
        super(suite);
    }

    private CudaFunction writeSequence() {
        return closedLater(CudaModule.load(memory, DEVICE, MemoryKernels.ptx())).function("cistern_write_sequence_u32");
    }

    @Test
    void aKernelWorksOnBuffers() {
        CudaFunction write = writeSequence();
        DeviceBuffer buffer = buffer(400);
        write.launch(4, 32, stream, buffer, 100L, 7);
        assertThat(buffer.elements(ValueLayout.JAVA_INT).toInts())
                .startsWith(7, 8, 9)
                .endsWith(106);
        write.launch(
                Extent.of(2, 2),
                Extent.of(8, 8),
                stream,
                buffer.elements(ValueLayout.JAVA_INT).slice(50, 50),
                50L,
                0);
        assertThat(buffer.elements(ValueLayout.JAVA_INT).toInts())
                .startsWith(7, 8)
                .endsWith(48, 49);
    }

    @Test
    void aKernelReachesPinnedMemory() {
        CudaFunction write = writeSequence();
        try (PinnedBuffer pinned = PinnedMemory.of(memory).allocate(400)) {
            write.launch(4, 32, stream, pinned, 100L, 3);
            stream.synchronize();
            assertThat(pinned.segment().toArray(ValueLayout.JAVA_INT))
                    .startsWith(3, 4)
                    .endsWith(102);
        }
    }

    @Test
    void buffersMayBeClosedOnceTheyAreLaunchedWith() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        CudaFunction write = writeSequence();
        DeviceBuffer buffer = buffer(MIB);
        latch.hold(other.handle());
        write.launch(64, 256, other, buffer, MIB / 4L, 0);
        buffer.close();
        DeviceBuffer next = buffer(MIB);
        latch.release();
        next.fill((byte) 3);
        other.synchronize();
        assertThat(contents(next)).containsOnly(3);
    }

    @Test
    void argumentsThatCanNotBeAreRefused() {
        CudaFunction write = writeSequence();
        DeviceBuffer closed = buffer(400);
        closed.close();
        assertThatIllegalStateException().isThrownBy(() -> write.launch(1, 1, stream, closed, 100L, 7));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> write.launch(1, 1, stream, "text", 100L, 7))
                .withMessageContaining("java.lang.String");
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> write.launch(0, 1, stream, 0L, 0L, 0))
                .matches(failure -> failure.result() == CudaResult.INVALID_VALUE);
    }

    @Test
    void aBufferOfAnotherDeviceIsRefused() {
        assumeTrue(driver.devices().count() > 1, "one device alone");
        CudaFunction write = writeSequence();
        CudaStream other = closedLater(CudaStream.open(memory, 1));
        DeviceBuffer there = closedLater(DeviceBuffer.allocate(400, other));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> write.launch(1, 1, stream, there, 100L, 7))
                .withMessageContaining("is on another");
    }

    @Test
    void aClosedModuleHasNoKernels() {
        CudaModule module = CudaModule.load(memory, DEVICE, MemoryKernels.ptx());
        CudaFunction write = module.function("cistern_write_sequence_u32");
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> module.function("no_such_kernel"))
                .matches(failure -> failure.result() == CudaResult.NOT_FOUND);
        module.close();
        module.close();
        assertThatIllegalStateException().isThrownBy(() -> module.function("cistern_write_sequence_u32"));
        assertThatIllegalStateException().isThrownBy(() -> write.launch(1, 1, stream, 0L, 0L, 0));
    }

    @Test
    void aSimulatedGpuSaysThatItRunsNoPtx() {
        assumeTrue(driver.simulated(), "a GPU runs PTX");
        String ptx = MemoryKernels.ptx().replace("cistern_latch", "kernel_of_a_program");
        CudaModule module = closedLater(CudaModule.load(memory, DEVICE, ptx));
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> module.function("kernel_of_a_program"))
                .matches(failure -> failure.result() == CudaResult.NOT_SUPPORTED)
                .withMessageContaining("a simulated GPU can't run PTX");
    }

    @Test
    void cudaSourceIsCompiledWhereTheCompilerIs() {
        assumeFalse(driver.simulated(), "a simulated GPU can't run PTX");
        CudaModule module;
        try {
            module = closedLater(CudaModule.compile(memory, DEVICE, VECTOR_ADD));
        } catch (UnsupportedOperationException notInstalled) {
            abort(notInstalled.getMessage());
            return;
        }
        float[] ones = new float[1000];
        java.util.Arrays.fill(ones, 1);
        DeviceBuffer x = buffer(4000);
        DeviceBuffer sum = buffer(4000);
        x.copyFrom(MemorySegment.ofArray(ones));
        module.function("vector_add").launch(4, 256, stream, x, x, sum, 1000);
        assertThat(sum.elements(ValueLayout.JAVA_FLOAT).toFloats())
                .hasSize(1000)
                .containsOnly(2f);
        NvrtcException failure = catchThrowableOfType(
                NvrtcException.class,
                () -> CudaModule.compile(memory, DEVICE, "__global__ void broken() { undefined_name = 1; }"));
        assertThat(failure.log()).contains("program.cu(1)").contains("undefined_name");
    }
}
