package io.cistern.caching.internal.check;

import io.cistern.cuda.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Fills device memory with a byte, and searches it for other bytes; both in stream order. Used by one thread
/// at a time.
final class MemoryPattern {
    /// Fills freed memory. Odd and large as a number of any type, so that a program that reads it notices.
    static final byte FREED = (byte) 0xDB;
    /// Fills guard bytes.
    static final byte GUARD = (byte) 0xA5;

    /// The bytes that one copy brings to the host.
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

    /// Searches for the first byte with another value. Waits for the stream.
    ///
    /// @return its offset, or -1 if there is none
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
