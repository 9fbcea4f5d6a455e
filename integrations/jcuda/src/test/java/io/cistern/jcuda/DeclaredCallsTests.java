package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.CaptureMode;
import io.cistern.hazards.HazardObserver;
import io.cistern.hazards.StreamHazard;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.hazards.StreamHazards;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// JCuda's calls on two streams, as the check for races hears of them. The streams are at work until the end.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class DeclaredCallsTests {
    private static final long BYTES = 4096;
    private static final long FOREIGN_CONTEXT = 0xf0;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final DeviceMemory memory = watched();
    private final StreamHazards hazards = StreamHazards.of(memory).orElseThrow();
    private final CUstream one = stream();
    private final CUstream other = stream();
    private final CUevent event = HandleField.set(new CUevent(), gpu.events().create(0));
    private final CUdeviceptr block = JCudaPointers.of(memory.allocate(BYTES, 0, JCudaStreams.handle(one)));
    private JCudaContext context;

    private final class PlainMemory implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            gpu.memory().free(device, address);
        }
    }

    private DeviceMemory watched() {
        HazardObserver observer = new HazardObserver();
        System.setProperty("cistern.hazards", "list");
        try {
            DeviceMemory opened = DeviceMemory.builder(observer.around(gpu))
                    .catalog(Catalog.of(List.of(), List.of()))
                    .open();
            observer.observe(opened);
            opened.currents().set(opened.open(OpenOptions.made("plain", new PlainMemory())));
            return opened;
        } finally {
            System.clearProperty("cistern.hazards");
        }
    }

    private CUstream stream() {
        long handle = gpu.streams().create(0);
        gpu.keepBusy(0, handle, 3_600_000_000_000L);
        return HandleField.set(new CUstream(), handle);
    }

    @BeforeEach
    void enter() {
        context = JCudaContext.enter(memory, 0);
        order(one, other);
    }

    @AfterEach
    void close() {
        context.close();
        gpu.passTime(3_600_000_000_000L);
        memory.free(JCudaPointers.address(block), JCudaStreams.handle(one));
        memory.close();
        gpu.close();
    }

    private JCudaUses uses() {
        return JCudaUses.of(memory);
    }

    private void order(CUstream first, CUstream second) {
        uses().records(event, first, () -> 0);
        uses().awaits(second, event, () -> 0);
    }

    private List<Kind> kinds() {
        return hazards.list().stream().map(StreamHazard::kind).toList();
    }

    @Test
    void copiesAndFillsThatNothingOrdersAreFound() {
        uses().writes(one, block, BYTES);
        uses().copies(other, block, null, BYTES);
        assertThat(kinds()).containsExactly(Kind.RACE);
        StreamHazard.Place second = hazards.list().getFirst().second();
        assertThat(second.stack().getFirst().getMethodName()).isEqualTo("copiesAndFillsThatNothingOrdersAreFound");
        assertThat(second.isWrite()).isFalse();
    }

    @Test
    void anEventOfJCudaOrders() {
        uses().writes(one, block, BYTES);
        order(one, other);
        uses().writes(other, block, BYTES);
        assertThat(kinds()).isEmpty();
        uses().writes(one, block, BYTES);
        assertThat(kinds()).as("the way back").containsExactly(Kind.RACE);
    }

    @Test
    void anEventThatIsDestroyedOrdersNothing() {
        uses().writes(one, block, BYTES);
        uses().records(event, one, () -> 0);
        uses().destroys(event);
        uses().awaits(other, event, () -> 0);
        uses().writes(other, block, BYTES);
        assertThat(kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void aWaitOfTheHostOrdersOnlyIfItSucceeds() {
        uses().writes(one, block, BYTES);
        assertThat(uses().untilStream(one, () -> 600)).isEqualTo(600);
        uses().copies(other, block, null, BYTES);
        assertThat(kinds()).containsExactly(Kind.RACE);
        hazards.clear();
        uses().untilStream(other, () -> uses().untilStream(one, () -> 0));
        uses().writes(one, block, BYTES);
        assertThat(kinds()).isEmpty();
    }

    @Test
    void waitsForEventsAndForTheDeviceOrder() {
        uses().writes(one, block, BYTES);
        uses().records(event, one, () -> 0);
        uses().untilEvent(event, () -> 0);
        uses().writes(other, block, BYTES);
        uses().untilDevice(() -> 0);
        uses().writes(one, block, BYTES);
        assertThat(kinds()).isEmpty();
    }

    @Test
    void nullsAreLeftToJCuda() {
        uses().copies(null, null, null, BYTES);
        uses().writes(null, null, BYTES);
        uses().launches(null, null);
        uses().destroys((CUevent) null);
        uses().destroys((CUstream) null);
        assertThat(uses().records(null, null, () -> 400)).isEqualTo(400);
        assertThat(uses().awaits(null, null, () -> 400)).isEqualTo(400);
        assertThat(uses().untilEvent(null, () -> 400)).isEqualTo(400);
        assertThat(uses().untilCopied(null, () -> 1)).isEqualTo(1);
        assertThat(kinds()).isEmpty();
    }

    @Test
    void eventsThatJCudaRefusesToRecordOrAwaitOrderNothing() {
        uses().writes(one, block, BYTES);
        uses().records(event, one, () -> 400);
        uses().awaits(other, event, () -> 0);
        uses().writes(other, block, BYTES);
        assertThat(kinds()).containsExactly(Kind.RACE);
        hazards.clear();
        uses().records(event, other, () -> 0);
        uses().awaits(one, event, () -> 400);
        uses().writes(one, block, BYTES);
        assertThat(kinds()).containsExactly(Kind.RACE);
    }

    /// The next stream of the handle is another one.
    @Test
    void aStreamThatIsDestroyedIsNotTheNextOne() {
        uses().writes(other, block, BYTES);
        uses().destroys(other);
        uses().writes(other, block, BYTES);
        assertThat(kinds()).contains(Kind.RACE);
    }

    @Test
    void pointersAndNumbersAmongAKernelsArgumentsAreUses() {
        Pointer count = Pointer.to(new int[] {7});
        uses().launches(one, Pointer.to(Pointer.to(block), count));
        uses().launches(other, Pointer.to(count, Pointer.to(new long[] {JCudaPointers.address(block)})));
        assertThat(kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void kernelsMayReadOneBlockAtTheSameTime() {
        Pointer input = CisternCalls.readOnly(block);
        assertThat(JCudaPointers.address(input)).isEqualTo(JCudaPointers.address(block));
        uses().launches(one, Pointer.to(Pointer.to(input)));
        uses().launches(other, Pointer.to(Pointer.to(input)));
        assertThat(kinds()).isEmpty();
        uses().launches(other, Pointer.to(Pointer.to(block)));
        assertThat(kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void aCopyFromAnArrayUsesTheDevicesSideAlone() {
        Pointer array = Pointer.to(new byte[(int) BYTES]);
        uses().copies(one, array, block, BYTES);
        uses().copies(other, array, null, BYTES);
        assertThat(kinds()).isEmpty();
    }

    @Test
    void anArgumentIsTheNumberAtItsOffset() {
        Pointer second =
                Pointer.to(new long[] {0, JCudaPointers.address(block)}).withByteOffset(Long.BYTES);
        uses().launches(one, Pointer.to(second));
        uses().launches(other, Pointer.to(second));
        assertThat(kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void columnsOfTheSameRowsMayBeWrittenAtTheSameTime() {
        uses().writesRows(one, block, 512, 256, 8);
        uses().writesRows(other, block.withByteOffset(256), 512, 256, 8);
        assertThat(kinds()).isEmpty();
        uses().writesRows(other, block.withByteOffset(255), 512, 1, 8);
        assertThat(kinds()).containsExactly(Kind.RACE);
    }

    @Test
    void rowsWithoutBytesAreNoUse() {
        uses().writesRows(one, block, 512, 0, 8);
        uses().writes(other, block, BYTES);
        assertThat(kinds()).isEmpty();
    }

    @Test
    void workThatAStreamCapturesIsLeftOut() {
        gpu.graphs().beginCapture(0, JCudaStreams.handle(one), CaptureMode.RELAXED);
        uses().writes(one, block, BYTES);
        uses().launches(one, Pointer.to(Pointer.to(block)));
        gpu.graphs().destroy(0, gpu.graphs().endCapture(0, JCudaStreams.handle(one)));
        uses().writes(other, block, BYTES);
        assertThat(kinds()).isEmpty();
    }

    @Test
    void inAForeignContextOrWithoutTheCheckNothingIsTold() {
        gpu.devices().leaveContext(0, FOREIGN_CONTEXT);
        assertThat(uses().hazards()).isNull();
        uses().writes(one, block, BYTES);
        uses().copies(other, block, null, BYTES);
        assertThat(uses().records(event, one, () -> 3)).isEqualTo(3);
        assertThat(uses().awaits(other, event, () -> 3)).isEqualTo(3);
        assertThat(uses().untilDevice(() -> 3)).isEqualTo(3);
        context = JCudaContext.enter(memory, 0);
        assertThat(uses().hazards()).isSameAs(hazards);
        try (MallocFixture unwatched = new MallocFixture()) {
            assertThat(JCudaUses.of(unwatched.memory).hazards()).isNull();
        }
    }
}
