package io.cistern.onnxruntime;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Hands out memory of the host, with guards around each block. Freed blocks are filled and never reused, so a use
/// after the free, or beside the block, is found.
final class HostAllocator implements AllocatorProvider, DeviceAllocator {
    private static final long ALIGNMENT = 256;
    private static final byte GUARD = 0x5A;
    private static final byte FREED = (byte) 0xCC;

    private final Arena arena = Arena.ofShared();
    private final Map<Long, MemorySegment> blocks = new ConcurrentHashMap<>();
    private final Map<Long, MemorySegment> freed = new ConcurrentHashMap<>();

    /// How many more allocations succeed.
    volatile int left = Integer.MAX_VALUE;

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "host";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return this;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        synchronized (this) {
            if (left-- <= 0) {
                throw new DeviceOutOfMemoryException(byteSize, device, "the test's memory ends here");
            }
        }
        MemorySegment whole =
                arena.allocate(byteSize + 2 * ALIGNMENT, ALIGNMENT).fill(GUARD);
        long address = whole.address() + ALIGNMENT;
        blocks.put(address, whole);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        MemorySegment whole = blocks.remove(address);
        freed.put(address, whole);
        whole.asSlice(ALIGNMENT, byteSize).fill(FREED);
    }

    /// All blocks are freed, and nobody wrote beside one, or into one after its free.
    void requireUnspoilt() {
        assertThat(blocks).isEmpty();
        freed.forEach((address, whole) -> {
            long end = whole.byteSize() - ALIGNMENT;
            for (long i = 0; i < whole.byteSize(); i++) {
                byte expected = i < ALIGNMENT || i >= end ? GUARD : FREED;
                assertThat(whole.get(ValueLayout.JAVA_BYTE, i))
                        .as("byte %d of the block at %#x", i - ALIGNMENT, address)
                        .isEqualTo(expected);
            }
        });
    }
}
