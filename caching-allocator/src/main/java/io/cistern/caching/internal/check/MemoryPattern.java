package io.cistern.caching.internal.check;

import io.cistern.cuda.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Fills device memory with a byte, and looks for other bytes there; both in stream order. Used by one thread at a
/// time.
final class MemoryPattern {
    /// Freed memory. Odd and large as a number of any type, so that a program that reads it notices.
    static final byte FREED = (byte) 0xDB;
    /// Guard bytes.
    static final byte GUARD = (byte) 0xA5;

    /// Bytes looked at in one copy.
    private static final long CHUNK = 1L << 20;

    private final CudaDriver driver;
    private final MemorySegment read = Arena.ofAuto().allocate(CHUNK);
    private final MemorySegment expected = Arena.ofAuto().allocate(CHUNK);

    MemoryPattern(CudaDriver driver) {
        this.driver = driver;
    }

    void fill(int device, long address, long byteSize, byte value, long stream) {
        driver.copies().fillBytes(device, address, value, byteSize, stream);
    }

    /// Waits for the stream.
    ///
    /// @return the offset of the first byte that is another one, or -1
    long firstOther(int device, long address, long byteSize, byte value, long stream) {
        expected.fill(value);
        for (long at = 0; at < byteSize; at += CHUNK) {
            long length = Math.min(CHUNK, byteSize - at);
            driver.copies().toHost(device, read, address + at, length, stream);
            driver.streams().synchronize(device, stream);
            long other = MemorySegment.mismatch(read, 0, length, expected, 0, length);
            if (other >= 0) {
                return at + other;
            }
        }
        return -1;
    }
}
