package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Blocks of a capture that is given up, which no launch ever allocates: the driver knows their addresses as long as
/// it knows the graph.
class GivenUpCapturesTests extends AsyncFixture {
    private long block;

    @BeforeEach
    void useAsync() {
        memory.setCurrent("async");
    }

    private GraphCapture captureWithABlock() {
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.THREAD_LOCAL);
        block = memory.allocate(MIB, DEVICE, stream);
        return capture;
    }

    private void assertOthersGetOtherAddresses() {
        long others = memory.allocate(MIB, DEVICE, other);
        assertThat(others).isNotEqualTo(block);
        memory.free(others, other);
    }

    @Test
    void nobodyGetsTheAddressBeforeItIsFreed() {
        captureWithABlock().close();
        assertOthersGetOtherAddresses();
        memory.free(block, stream);
        assertThat(gpu.calls().of(DriverCall.GRAPH_DESTROY)).isOne();
    }

    @Test
    void norIfTheDriverWillNotTellOfTheGraphsEnd() {
        try (GraphCapture capture = captureWithABlock()) {
            gpu.faults().failOn(DriverCall.GRAPH_RETAIN_USER_OBJECT, 0, 1, CudaResult.UNKNOWN);
            assertThatThrownBy(capture::end).isInstanceOf(CudaException.class);
        }
        assertOthersGetOtherAddresses();
        memory.free(block, stream);
        assertThat(gpu.calls().of(DriverCall.GRAPH_DESTROY)).isOne();
    }

    @Test
    void aFreeBesideAnotherCaptureFreesNobodyElsesBlock() {
        GraphCapture capture = captureWithABlock();
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, other, CaptureMode.THREAD_LOCAL)) {
            capture.close();
            memory.free(block, stream);
            long others = memory.allocate(MIB, DEVICE, stream);
            gpu.copies().fillBytes(DEVICE, others, (byte) 1, MIB, stream);
            block = others;
        }
        memory.free(block, stream); // a misuse, if the end of the captures freed it
        assertThat(gpu.calls().of(DriverCall.GRAPH_DESTROY)).isEqualTo(2);
    }

    @Test
    void aResultThatWasFreedBeforeTheCloseFreesNobodyElsesBlock() {
        CudaGraph graph = captureWithABlock().endAndInstantiate();
        memory.free(block, stream);
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, other, CaptureMode.THREAD_LOCAL)) {
            graph.close();
            block = memory.allocate(MIB, DEVICE, stream);
        }
        memory.free(block, stream); // a misuse, if the end of the captures freed it
    }

    @Test
    void aRefusedLaunchIsNone() {
        CudaGraph graph = captureWithABlock().endAndInstantiate();
        gpu.faults().failOn(DriverCall.GRAPH_LAUNCH, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> graph.launch(stream)).isInstanceOf(CudaException.class);
        graph.close();
        assertOthersGetOtherAddresses();
        memory.free(block, stream);
    }

    @Test
    void withoutBlocksTheGraphGoesAtOnce() {
        GraphCapture capture = captureWithABlock();
        memory.free(block, stream);
        capture.close();
        assertThat(gpu.calls().of(DriverCall.GRAPH_DESTROY)).isOne();
    }
}
