package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.cuda.CudaException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;

/// A simulated GPU of 16 GiB, whose memory `caching` has in large pages that hold little: a block of 24 MiB,
/// then as much that is free, and so on. No page is free as a whole, and the device has next to nothing left. One
/// thread does all work, and the program says so.
abstract class CompactionFixture {
    static final int DEVICE = 0;
    static final long MIB = 1 << 20;
    static final long BLOCK = 24 * MIB;
    static final long CAPACITY = 16L << 30;
    private static final int BLOCKS = 32;
    private static final long FREE = 26 * MIB;

    final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();
    final long stream = gpu.streams().create(DEVICE);
    final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
            .open();

    final Registration pause = memory.listeners().onCompaction(WorkPause.ofOneThread());

    /// What observers know of the memory that the allocator has.
    private final SegmentBook book = new SegmentBook(memory);

    /// The blocks in use by address, each with the byte that fills it.
    final Map<Long, Byte> live = new LinkedHashMap<>();

    private long rest;

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    @AfterEach
    void close() {
        gpu.faults().clear();
        live.keySet().forEach(address -> memory.free(address, stream));
        memory.close();
        book.assertEmpty();
        if (rest != 0) {
            gpu.memory().free(DEVICE, rest);
        }
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.heldObjects()).doesNotContainKey("events");
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(CAPACITY);
    }

    void fragment(String spec) {
        fragment(spec, FREE);
    }

    /// A trimmed block of 4 GiB makes pages large.
    ///
    /// @param free what the device has left
    void fragment(String spec, long free) {
        memory.setCurrent(spec);
        memory.free(memory.allocate(4L << 30, DEVICE, stream), stream);
        memory.current(DEVICE).trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        long[] gaps = new long[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            fill(i);
            gaps[i] = memory.allocate(BLOCK, DEVICE, stream);
        }
        for (long gap : gaps) {
            memory.free(gap, stream);
        }
        gpu.streams().synchronize(DEVICE, stream);
        memory.current(DEVICE).trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        rest = gpu.memory().allocate(DEVICE, gpu.memory().freeBytes(DEVICE) - free);
    }

    private void fill(int number) {
        long address = memory.allocate(BLOCK, DEVICE, stream);
        byte value = (byte) (number + 1);
        gpu.copies().fillBytes(DEVICE, address, value, BLOCK, stream);
        live.put(address, value);
    }

    /// Returns 0 if there is no memory.
    long tryAllocate(long byteSize) {
        try {
            return memory.allocate(byteSize, DEVICE, stream);
        } catch (DeviceOutOfMemoryException | CudaException refused) {
            return 0;
        }
    }

    void free(long address) {
        if (address != 0) {
            memory.free(address, stream);
        }
    }

    long figure(String key) {
        return memory.current(DEVICE).memoryStatistics(DEVICE).get(key);
    }

    /// Every block has its bytes at its address: at both ends, and where pages may begin.
    void assertContents() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(ValueLayout.JAVA_BYTE);
            live.forEach((address, value) -> {
                for (long at = 0; at < BLOCK; at += MIB) {
                    assertByte(host, address + at, value);
                }
                assertByte(host, address + BLOCK - 1, value);
            });
        }
    }

    private void assertByte(MemorySegment host, long address, byte value) {
        gpu.copies().toHost(DEVICE, host, address, 1, stream);
        gpu.streams().synchronize(DEVICE, stream);
        assertThat(host.get(ValueLayout.JAVA_BYTE, 0))
                .as("byte at 0x%x", address)
                .isEqualTo(value);
    }
}
