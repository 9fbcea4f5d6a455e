package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A short program through the public calls that has an allocator make every driver call that it can make: streams
/// with work pass memory among each other, one of them ends, memory runs out, and some of it is given back. What is
/// refused it does without, and it knows what is live.
final class FaultProgram {
    static final int DEVICE = 0;
    /// What it makes itself.
    static final Set<DriverCall> OWN = EnumSet.of(DriverCall.MEMSET_D8_ASYNC, DriverCall.STREAM_DESTROY);

    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;
    private static final int STREAMS = 3;
    /// What a stream is kept busy with, again and again, for longer than the host needs for a step.
    private static final long WORK_BYTES = 64 * MIB;
    private static final int WORK_TIMES = 40;
    private static final long CAPACITY = 320 * MIB + STREAMS * WORK_BYTES;
    /// Whole granules and size classes, so that as many bytes are allocated as are asked for.
    private static final long[] SIZES = {4 * KIB, 64 * KIB, MIB, 6 * MIB, 40 * MIB};

    final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();
    private final String spec;
    private final long first;
    private final long second;
    private final long ending;
    /// By stream.
    private final Map<Long, Long> work = new LinkedHashMap<>();

    private final Map<Long, Block> live = new LinkedHashMap<>();
    private @Nullable DeviceMemory memory;
    private byte contents;
    private int refused;
    private long ended;

    private record Block(long address, long byteSize, byte contents) {}

    FaultProgram(String spec) {
        this.spec = spec;
        first = newStream();
        second = newStream();
        ending = newStream();
    }

    private long newStream() {
        long stream = gpu.streams().create(DEVICE);
        work.put(stream, gpu.memory().allocate(DEVICE, WORK_BYTES));
        return stream;
    }

    /// All of it but closing.
    void run() {
        tried(this::open);
        if (memory == null) {
            gpu.faults().clear();
            open();
        }
        passMemoryOn();
        endAStream();
        runOut();
        giveBack();
    }

    private boolean open() {
        DeviceMemory opened = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .open();
        opened.setCurrent(spec);
        memory = opened;
        return true;
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    private DeviceMemory memory() {
        return Objects.requireNonNull(memory, "open");
    }

    private Allocator allocator() {
        return memory().current(DEVICE);
    }

    /// Blocks are freed behind work, on their own stream and on others, and their memory is wanted elsewhere.
    private void passMemoryOn() {
        for (long byteSize : SIZES) {
            free(allocate(byteSize, first), first);
        }
        long large = allocate(40 * MIB, first);
        keepBusy(first);
        free(large, first);
        long taken = allocate(40 * MIB, second);
        long small = allocate(64 * KIB, first);
        long middle = allocate(6 * MIB, first);
        keepBusy(second);
        free(small, second);
        free(middle, second);
        allocate(64 * KIB, first);
        allocate(6 * MIB, first);
        long used = allocate(6 * MIB, first);
        use(used, second);
        free(used, first);
        allocate(6 * MIB, first);
        free(taken, second);
        allocate(40 * MIB, first);
    }

    /// A stream ends that has memory, idle and live, and uses a block of another one.
    private void endAStream() {
        long idle = allocate(40 * MIB, ending);
        long freedElsewhere = allocate(6 * MIB, ending);
        long freedAfter = allocate(64 * KIB, ending);
        long used = allocate(MIB, first);
        use(used, ending);
        keepBusy(ending);
        free(idle, ending);
        tried(() -> {
            memory().streamClosing(DEVICE, ending);
            return true;
        });
        gpu.streams().destroy(DEVICE, ending);
        ended = ending;
        free(freedElsewhere, second);
        free(freedAfter, ending);
        free(used, first);
        allocate(40 * MIB, second);
        allocate(MIB, first);
    }

    /// Memory runs out while streams keep some idle and work goes on.
    private void runOut() {
        List<Long> blocks = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            long idle = allocate(20 * MIB, second);
            keepBusy(second);
            free(idle, second);
            for (long block = -1; block != 0 && blocks.size() < 20; ) {
                block = allocate(20 * MIB, first);
                blocks.add(block);
            }
            for (long block : blocks) {
                free(block, i == 0 ? first : second);
            }
            blocks.clear();
        }
    }

    private void giveBack() {
        keepBusy(first);
        trim(TrimMode.WITHOUT_WAITING);
        allocate(6 * MIB, second);
        keepBusy(second);
        free(allocate(6 * MIB, first), second);
        free(allocate(40 * MIB, second), second);
        trim(TrimMode.SYNCHRONIZE);
        for (long byteSize : SIZES) {
            allocate(byteSize, byteSize > MIB ? first : second);
        }
    }

    private void trim(TrimMode mode) {
        tried(() -> allocator().trim(DEVICE, 0, mode));
    }

    /// Returns 0 where the driver refuses.
    private long allocate(long byteSize, long stream) {
        Long address = tried(() -> memory().allocate(byteSize, DEVICE, stream));
        if (address == null) {
            return 0;
        }
        Block block = new Block(address, byteSize, ++contents);
        gpu.copies().fillBytes(DEVICE, address, block.contents, byteSize, stream);
        live.put(address, block);
        return address;
    }

    private void use(long address, long stream) {
        Block block = live.get(address);
        if (block != null) {
            memory().recordUse(address, stream);
            keepBusy(stream);
        }
    }

    private void free(long address, long stream) {
        Block block = live.remove(address);
        if (block != null) {
            if (stream != ended) {
                gpu.copies().fillBytes(DEVICE, address, block.contents, block.byteSize, stream);
            }
            memory().free(address, stream);
        }
    }

    private void keepBusy(long stream) {
        long address = work.get(stream);
        for (int i = 0; i < WORK_TIMES; i++) {
            gpu.copies().fillBytes(DEVICE, address, (byte) i, WORK_BYTES, stream);
        }
    }

    /// Does something that the driver may refuse.
    private <T> @Nullable T tried(Supplier<T> action) {
        try {
            return action.get();
        } catch (DeviceOutOfMemoryException | CudaException refusal) {
            refused++;
            return null;
        }
    }

    /// How often something was refused.
    int refused() {
        return refused;
    }

    /// Now that the driver works again: what is live is whole and counted, and what was asked for is to be had.
    void checkAfterwards() {
        checkCounts();
        gpu.devices().synchronize(DEVICE);
        live.values().forEach(this::checkContents);
        for (long byteSize : SIZES) {
            for (long stream : new long[] {first, second}) {
                long address = memory().allocate(byteSize, DEVICE, stream);
                gpu.copies().fillBytes(DEVICE, address, (byte) 0, byteSize, stream);
                memory().free(address, stream);
            }
        }
        checkCounts();
    }

    private void checkCounts() {
        allocator().extension(CachingAllocator.class).orElseThrow().checkInvariants();
        long bytes = live.values().stream().mapToLong(Block::byteSize).sum();
        Map<String, Long> counted = allocator().memoryStatistics(DEVICE);
        assertThat(counted.get("requested_bytes.all.current")).as("requested").isEqualTo(bytes);
        assertThat(counted.get("allocated_bytes.all.current")).as("allocated").isEqualTo(bytes);
        assertThat(allocator().statistics(DEVICE).requestedBytes())
                .as("requested of the framework")
                .isEqualTo(bytes);
        assertThat(allocator().statistics(DEVICE).liveBlocks())
                .as("blocks of the framework")
                .isEqualTo(live.size());
        assertThat(gpu.memory().freeBytes(DEVICE))
                .as("what is reserved is what the driver gave")
                .isEqualTo(CAPACITY - work.size() * WORK_BYTES - reservedBytes());
    }

    private long reservedBytes() {
        return allocator().reservedBytes(DEVICE).orElseThrow();
    }

    private void checkContents(Block block) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(2);
            gpu.copies().toHost(DEVICE, host.asSlice(0, 1), block.address, 1, first);
            gpu.copies().toHost(DEVICE, host.asSlice(1), block.address + block.byteSize - 1, 1, first);
            gpu.devices().synchronize(DEVICE);
            assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsOnly(block.contents);
        }
    }

    /// Behind work.
    void freeAll() {
        keepBusy(first);
        List.copyOf(live.keySet()).forEach(address -> free(address, first));
    }

    /// Has everything given back.
    void trimAll() {
        allocator().trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(reservedBytes()).as("reserved after a trim").isZero();
    }

    void close() {
        tried(() -> {
            memory().close();
            return true;
        });
        assertThat(memory().allocators()).as("allocators that are open").isEmpty();
    }

    void checkNothingIsMisused() {
        assertThat(gpu.misuses()).isEmpty();
    }

    void checkAllIsBack() {
        assertThat(gpu.memory().freeBytes(DEVICE)).as("free in the end").isEqualTo(CAPACITY - work.size() * WORK_BYTES);
    }
}
