package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandleException;
import io.cistern.handles.HandlePool;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.jvm.FakeLibrary;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import jcuda.CudaException;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// JCublas itself over a cuBLAS made for it.
class JCublasHandlesTests {
    private static final boolean DRIVER_API = FakeLibcuda.load().isPresent();
    private static final FakeLibrary FAKE = FakeCublas.load().orElse(null);

    private SimulatedGpu gpu;
    private DeviceMemory memory;
    private HandlePool<cublasHandle> pool;

    @BeforeEach
    void open() {
        assumeTrue(DRIVER_API && FAKE != null, "no C compiler on the PATH");
        gpu = SimulatedGpu.builder().build();
        memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
                .open();
        memory.setCurrent("direct");
        FAKE.set("failing", 0);
        FAKE.set("created", 0);
        FAKE.set("destroyed", 0);
        pool = HandlePool.open(memory, JCublasHandles.library(memory));
    }

    @AfterEach
    void close() {
        memory.close();
        assertThat(FAKE.get("destroyed")).isEqualTo(FAKE.get("created"));
        gpu.close();
    }

    @Test
    void aThreadsHandleHasItsStreamAndAWorkspace() {
        long stream = gpu.streams().create(0);
        cublasHandle handle = pool.handle(0, stream);
        assertThat(HandleField.of(handle, "handle")).isNotZero();
        assertThat(FAKE.get("stream")).isEqualTo(stream);
        assertThat(FAKE.get("bytes")).isEqualTo(32L << 20);
        assertThat(FAKE.get("workspace")).isNotZero();
        assertThat(pool.handle(0, gpu.streams().create(0))).isSameAs(handle);
        assertThat(FAKE.get("stream")).isNotEqualTo(stream);
    }

    @Test
    void anotherThreadHasAnother() throws InterruptedException {
        cublasHandle mine = pool.handle(0, 0);
        AtomicReference<cublasHandle> other = new AtomicReference<>();
        Thread thread = Thread.ofPlatform().start(() -> other.set(pool.handle(0, 0)));
        thread.join();
        assertThat(other.get()).isNotNull().isNotSameAs(mine);
        assertThat(FAKE.get("created")).isEqualTo(2);
    }

    @Test
    void aRefusalIsAnExceptionWhateverJCublassFlagSays() {
        FAKE.set("failing", 2);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> pool.handle(0, 0))
                .withMessageContaining("CUBLAS_STATUS_ALLOC_FAILED")
                .withCauseInstanceOf(CudaException.class);
        JCublas2.setExceptionsEnabled(true);
        try {
            FAKE.set("failing", 2);
            assertThatExceptionOfType(HandleException.class)
                    .isThrownBy(() -> pool.handle(0, 0))
                    .withMessageContaining("CUBLAS_STATUS_ALLOC_FAILED");
        } finally {
            JCublas2.setExceptionsEnabled(false);
        }
    }
}
