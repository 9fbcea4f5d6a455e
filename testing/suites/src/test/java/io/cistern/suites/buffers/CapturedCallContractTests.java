package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.buffers.CopyBatch;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.CudaFunction;
import io.cistern.buffers.CudaModule;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.DeviceRows;
import io.cistern.buffers.ManagedMemory;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.buffers.dlpack.Dlpack;
import io.cistern.buffers.dlpack.DlpackTensor;
import io.cistern.buffers.dlpack.TensorLayout;
import io.cistern.buffers.dlpack.TensorType;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.TrimMode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Calls while their stream is captured: those that the capture forbids are refused with what to do instead, before
/// the driver is asked, and the capture goes on.
abstract class CapturedCallContractTests extends BufferFixture {
    private static final int BYTES = 4096;
    private static final int MANAGED_BYTES = MIB;
    private static final TensorLayout LAYOUT = TensorLayout.compact(TensorType.UINT8, BYTES);

    private final MemorySegment array = MemorySegment.ofArray(new byte[BYTES]);
    private Arena arena;
    private MemorySegment pageable;
    private CudaStream other;
    private PinnedBuffer pinned;
    private CudaModule module;
    private CudaFunction kernel;
    private CudaEvent event;
    private DeviceBuffer buffer;
    private DeviceBuffer second;
    private DeviceBuffer ofOther;
    private DeviceBuffer managed;
    private DlpackTensor taken;

    CapturedCallContractTests(BufferContract suite) {
        super(suite);
    }

    @BeforeEach
    void openAll() {
        arena = closedLater(Arena.ofConfined());
        pageable = arena.allocate(BYTES);
        other = anotherStream();
        pinned = closedLater(PinnedMemory.of(memory).allocate(BYTES));
        module = closedLater(CudaModule.load(memory, DEVICE, MemoryKernels.ptx()));
        kernel = module.function("cistern_write_sequence_u32");
        event = closedLater(CudaEvent.open(memory, DEVICE)).record(other);
        buffer = buffer(BYTES);
        second = buffer(BYTES);
        ofOther = closedLater(DeviceBuffer.allocate(BYTES, other));
        long address = driver.unifiedMemory().allocate(DEVICE, MANAGED_BYTES);
        closedLater(() -> driver.memory().free(DEVICE, address));
        managed = closedLater(DeviceBuffer.ofForeign(memory, address, MANAGED_BYTES, DEVICE, stream.handle()));
        try (DeviceBuffer shared = DeviceBuffer.allocate(BYTES, other)) {
            taken = closedLater(Dlpack.take(Dlpack.share(shared, LAYOUT, stream.handle()), stream));
        }
        stream.synchronize();
        other.synchronize();
    }

    private record Call(String name, Consumer<CapturedCallContractTests> call) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static Call call(String name, Consumer<CapturedCallContractTests> call) {
        return new Call(name, call);
    }

    private DeviceRows rows(DeviceBuffer of) {
        return of.rows(0, 64, 32, 8);
    }

    static List<Call> refused() {
        return List.of(
                call("array to device", on -> on.buffer.copyFrom(on.array)),
                call("device to array", on -> on.buffer.copyTo(on.array)),
                call("JDK buffer to device", on -> on.buffer.copyFrom(ByteBuffer.allocateDirect(BYTES))),
                call("pageable to device, blocking", on -> on.buffer.copyFrom(on.pageable)),
                call("device to pageable, blocking", on -> on.buffer.copyTo(on.pageable)),
                call("pinned to device, blocking", on -> on.buffer.copyFrom(on.pinned, on.stream, CopyMode.BLOCKING)),
                call("device to pinned, blocking", on -> on.buffer.copyTo(on.pinned, on.stream, CopyMode.BLOCKING)),
                call("pinned memory to device, blocking", on -> on.buffer.copyFrom(on.pinned.segment())),
                call(
                        "rows of an array",
                        on -> on.rows(on.buffer).copyFrom(on.array, 64, on.stream.handle(), CopyMode.NON_BLOCKING)),
                call("rows to an array", on -> on.rows(on.buffer).copyTo(on.array, 64, on.stream.handle())),
                call(
                        "rows of pinned memory, blocking",
                        on -> on.rows(on.buffer).copyFrom(on.pinned, 64, on.stream.handle(), CopyMode.BLOCKING)),
                call(
                        "rows to pinned memory, blocking",
                        on -> on.rows(on.buffer).copyTo(on.pinned, 64, on.stream.handle(), CopyMode.BLOCKING)),
                call(
                        "batch, blocking",
                        on -> new CopyBatch().onDevice(on.buffer, on.second).submit(on.stream, CopyMode.BLOCKING)),
                call(
                        "batch of an array",
                        on -> new CopyBatch().toDevice(on.buffer, on.array).submit(on.stream, CopyMode.NON_BLOCKING)),
                call("buffer of another stream", on -> on.buffer.copyFrom(on.ofOther)),
                call("buffer that moves to the stream", on -> on.ofOther.moveToStream(on.stream)),
                call("element", on -> on.buffer.elements(ValueLayout.JAVA_INT).set(0, 7)),
                call("elements", on -> on.buffer.elements(ValueLayout.JAVA_INT).toInts()),
                call(
                        "fill with longs",
                        on -> on.buffer.elements(ValueLayout.JAVA_LONG).fill(7L)),
                call("prefetch", on -> ManagedMemory.prefetch(on.managed, MemoryLocation.device(0), on.stream)),
                call(
                        "prefetch of several",
                        on -> ManagedMemory.prefetch(List.of(on.managed), MemoryLocation.device(0), on.stream)),
                call("discard", on -> ManagedMemory.discard(on.managed, on.stream)),
                call("tensor that is given back", on -> on.taken.close()),
                call("tensor of another stream", on -> Dlpack.share(on.ofOther, LAYOUT, on.stream.handle())));
    }

    static List<Call> allowed() {
        return List.of(
                call("fill", on -> on.buffer.fill((byte) 1)),
                call(
                        "batch to pageable memory",
                        on -> new CopyBatch().toHost(on.pageable, on.buffer).submit(on.stream, CopyMode.NON_BLOCKING)),
                call(
                        "batch of pageable memory",
                        on -> new CopyBatch()
                                .onDevice(on.second, on.buffer)
                                .toDevice(on.buffer, on.pageable)
                                .submit(on.stream, CopyMode.NON_BLOCKING)),
                call("device to pageable", on -> on.buffer.copyTo(on.pageable, on.stream, CopyMode.NON_BLOCKING)),
                call("pageable to device", on -> on.buffer.copyFrom(on.pageable, on.stream, CopyMode.NON_BLOCKING)),
                call("fill with words", on -> on.buffer.fillWords(1)),
                call("copy", on -> on.buffer.copyFrom(on.second)),
                call("copy of another stream's, ordered", on -> on.buffer.copyFrom(on.ofOther, on.stream)),
                call("new copy", on -> on.buffer.copy().close()),
                call("resized", on -> on.buffer.copy().resize(2 * BYTES).close()),
                call("pinned to device", on -> on.buffer.copyFrom(on.pinned, on.stream, CopyMode.NON_BLOCKING)),
                call("device to pinned", on -> on.buffer.copyTo(on.pinned, on.stream, CopyMode.NON_BLOCKING)),
                call(
                        "pinned memory to device",
                        on -> on.buffer.copyFrom(on.pinned.segment(), on.stream, CopyMode.NON_BLOCKING)),
                call(
                        "rows of pinned memory",
                        on -> on.rows(on.buffer).copyFrom(on.pinned, 64, on.stream.handle(), CopyMode.NON_BLOCKING)),
                call("rows", on -> on.rows(on.buffer).copyFrom(on.rows(on.second), on.stream.handle())),
                call(
                        "batch",
                        on -> new CopyBatch()
                                .onDevice(on.buffer, on.second)
                                .toDevice(on.second, on.pinned)
                                .submit(on.stream, CopyMode.NON_BLOCKING)),
                call(
                        "advice",
                        on -> ManagedMemory.advise(on.managed, MemoryAdvice.SET_READ_MOSTLY, MemoryLocation.device(0))),
                call("attributes", on -> ManagedMemory.attributes(on.managed)),
                call("launch", on -> on.kernel.launch(1, 32, on.stream, on.buffer, 32L, 7)),
                call("kernel", on -> on.module.function("cistern_write_sequence_u32")),
                call(
                        "module",
                        on -> CudaModule.load(on.memory, 0, MemoryKernels.ptx()).close()),
                call(
                        "pinned buffer",
                        on -> PinnedMemory.of(on.memory).allocate(1 << 20).close()),
                call(
                        "pinned region",
                        on -> PinnedMemory.of(on.memory)
                                .register(on.arena.allocate(BYTES, BYTES))
                                .close()),
                call("trim of pinned memory", on -> PinnedMemory.of(on.memory).trim()),
                call("trim", on -> on.memory.trim(0, 0, TrimMode.SYNCHRONIZE)),
                call("arena", on -> {
                    try (DeviceArena steps = DeviceArena.builder(on.memory).open(on.stream)) {
                        steps.buffer(BYTES).fill((byte) 1);
                        steps.reset();
                    }
                }),
                call(
                        "tensor",
                        on -> Dlpack.take(Dlpack.share(on.buffer, LAYOUT, on.stream.handle()), on.stream)
                                .closeBefore(on.stream)),
                call(
                        "buffer closed after an event",
                        on -> DeviceBuffer.allocate(BYTES, on.other).closeAfter(on.event)));
    }

    @ParameterizedTest
    @MethodSource("refused")
    void whatACaptureForbidsIsRefusedAndTheCaptureGoesOn(Call each) {
        inCapture(() -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> each.call.accept(this))
                    .withMessageContaining("stream 0x" + Long.toHexString(stream.handle()) + " is being captured: ");
        });
        stream.synchronize();
    }

    @ParameterizedTest
    @MethodSource("allowed")
    void whatACaptureAllowsLeavesItValid(Call each) {
        inCapture(() -> each.call.accept(this));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void eachLaunchReadsAndWritesTheMemoryOfTheHost(boolean isPinned) {
        MemorySegment source = isPinned ? pinned.segment() : pageable;
        MemorySegment target =
                isPinned ? closedLater(PinnedMemory.of(memory).allocate(BYTES)).segment() : arena.allocate(BYTES);
        try (GraphCapture capture = GraphCapture.begin(stream, CaptureMode.GLOBAL)) {
            buffer.copyFrom(source, stream, CopyMode.NON_BLOCKING);
            buffer.copyTo(target, stream, CopyMode.NON_BLOCKING);
            try (CudaGraph graph = capture.endAndInstantiate()) {
                for (byte value : new byte[] {3, 5}) {
                    source.fill(value);
                    graph.launch(stream);
                    stream.synchronize();
                    assertThat(target.toArray(ValueLayout.JAVA_BYTE)).containsOnly(value);
                }
            }
        }
    }

    private void inCapture(Runnable work) {
        try (GraphCapture capture = GraphCapture.begin(stream, CaptureMode.GLOBAL)) {
            work.run();
            assertThat(driver.graphs().captureStatus(0, stream.handle())).isEqualTo(CaptureStatus.ACTIVE);
            try (CudaGraph graph = capture.endAndInstantiate()) {
                graph.launch(stream);
            }
        }
    }
}
