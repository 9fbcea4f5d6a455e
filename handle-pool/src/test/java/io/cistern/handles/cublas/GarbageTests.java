package io.cistern.handles.cublas;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Devices;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.fake.FakeLibraries;
import io.cistern.handles.fake.OverFake;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Products make no garbage, but what the simulated GPU's contexts make.
class GarbageTests {
    private static final int WARM_UP = 50_000;
    private static final int MEASURED = 100_000;

    /// What the measurement itself may allocate; one object a call would be 1.6 million bytes.
    private static final long NOISE_BYTES = 20_000;

    private static final Gemm GEMM = Gemm.of(8, 8, 8);
    private static final GemmBatch BATCH = GEMM.batch(2);

    @Test
    void productsAllocateNothing(@TempDir Path folder) {
        FakeLibraries fake = new FakeLibraries(folder, "libcublas.so.12");
        try (OverFake over = new OverFake(fake);
                Cublas cublas = Cublas.open(over.memory, CublasFunctions.load(fake.path()), HandlePoolOptions.DEFAULT);
                CublasLt lt =
                        CublasLt.open(over.memory, CublasLtFunctions.load(fake.path()), HandlePoolOptions.DEFAULT)) {
            long stream = over.gpu.streams().create(0);
            DeviceBuffer a = over.buffer(1024, 0, stream);
            DeviceBuffer b = over.buffer(1024, 0, stream);
            DeviceBuffer c = over.buffer(1024, 0, stream);
            DeviceBuffer bias = over.buffer(1024, 0, stream);
            Devices devices = over.gpu.devices();
            long simulators = bytes(() -> devices.leaveContext(0, devices.enterContext(0))) + NOISE_BYTES;
            assertThat(bytes(() -> cublas.gemm(GEMM, a, b, c, stream)))
                    .as("gemm")
                    .isLessThan(simulators);
            assertThat(bytes(() -> cublas.gemmStridedBatched(BATCH, a, b, c, stream)))
                    .as("gemmStridedBatched")
                    .isLessThan(simulators);
            assertThat(bytes(() -> lt.matmul(GEMM, Epilogue.BIAS, a, b, c, bias, stream)))
                    .as("matmul")
                    .isLessThan(simulators);
        }
    }

    private static long bytes(Runnable call) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        run(call, WARM_UP);
        long before = threads.getCurrentThreadAllocatedBytes();
        run(call, MEASURED);
        return threads.getCurrentThreadAllocatedBytes() - before;
    }

    private static void run(Runnable call, int rounds) {
        for (int i = 0; i < rounds; i++) {
            call.run();
        }
    }
}
