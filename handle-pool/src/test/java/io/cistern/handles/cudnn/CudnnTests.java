package io.cistern.handles.cudnn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.handles.HandleException;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.fake.FakeLibraries;
import io.cistern.handles.fake.OverFake;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Handles of cuDNN.
class CudnnTests {
    @TempDir
    private static Path folder;

    private static FakeLibraries fake;

    private OverFake over;
    private Cudnn cudnn;

    @BeforeAll
    static void compile() {
        fake = new FakeLibraries(folder, "libcudnn.so.9");
    }

    @BeforeEach
    void open() {
        over = new OverFake(fake);
        CudnnLibrary library = CudnnLibrary.load(folder.toString(), over.gpu.devices());
        cudnn = Cudnn.open(over.memory, library, HandlePoolOptions.DEFAULT);
    }

    @AfterEach
    void close() {
        over.close();
    }

    @Test
    void aHandleHasItsStream() {
        long stream = over.gpu.streams().create(1);
        CudnnHandle handle = cudnn.pool().handle(1, stream);
        assertThat(handle.device()).isEqualTo(1);
        assertThat(fake.stream(handle.value())).isEqualTo(stream);
        assertThat(cudnn.pool().statistics(1).workspaceBytes()).isZero();
        cudnn.close();
        assertThat(fake.count("destroyed")).isEqualTo(1);
    }

    @Test
    void aRefusalIsToldByName() {
        fake.set("failing_creates", 2);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> cudnn.pool().handle(0, 0))
                .withMessageContaining("cudnnCreate(device=0) failed: CUDNN_STATUS_ALLOC_FAILED (3)")
                .withCauseInstanceOf(CudnnException.class);
    }

    @Test
    void theVersionIsTheLibrarys() {
        assertThat(cudnn.version()).isEqualTo(91002);
    }
}
