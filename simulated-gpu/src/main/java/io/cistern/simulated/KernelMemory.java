package io.cistern.simulated;

import io.cistern.simulated.internal.memory.HostSink;
import io.cistern.simulated.internal.memory.WordScanner;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// The memory that a kernel can access, by device address: that of the kernel's device, that of other devices
/// to which access is enabled, and pinned host memory. If a kernel uses an address that is not mapped, or that
/// its device may not access, the kernel ends and the context fails, as on hardware.
public final class KernelMemory {
    private final DeviceView view;

    KernelMemory(DeviceView view) {
        this.view = view;
    }

    /// Returns the 32-bit word at an address, which need not be aligned.
    public int readWord(long address) {
        byte[] bytes = new byte[4];
        read(address, bytes);
        return (bytes[0] & 0xff) | ((bytes[1] & 0xff) << 8) | ((bytes[2] & 0xff) << 16) | (bytes[3] << 24);
    }

    /// Writes a 32-bit word at an address, which need not be aligned.
    public void writeWord(long address, int value) {
        write(address, new byte[] {(byte) value, (byte) (value >>> 8), (byte) (value >>> 16), (byte) (value >>> 24)});
    }

    /// Returns the 64-bit word at an address, which need not be aligned.
    public long readLong(long address) {
        return (readWord(address) & 0xffff_ffffL) | ((long) readWord(address + 4) << 32);
    }

    /// Writes a 64-bit word at an address, which need not be aligned.
    public void writeLong(long address, long value) {
        writeWord(address, (int) value);
        writeWord(address + 4, (int) (value >>> 32));
    }

    /// Returns a copy of the floats that start at an address.
    ///
    /// @param address address of the first one, a multiple of 4
    /// @param count number of floats
    public float[] readFloats(long address, int count) {
        byte[] bytes = new byte[Math.multiplyExact(4, count)];
        read(address, bytes);
        float[] floats = new float[count];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(floats);
        return floats;
    }

    /// Writes floats, starting at an address.
    ///
    /// @param address address of the first one, a multiple of 4
    public void writeFloats(long address, float... values) {
        byte[] bytes = new byte[Math.multiplyExact(4, values.length)];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().put(values);
        write(address, bytes);
    }

    /// Returns a copy of the bytes that start at an address.
    ///
    /// @param byteSize number of bytes, at least 0
    public byte[] read(long address, int byteSize) {
        byte[] bytes = new byte[byteSize];
        read(address, bytes);
        return bytes;
    }

    /// Writes bytes, starting at an address.
    public void write(long address, byte[] source) {
        view.write(address, source, 0, source.length);
    }

    /// Fills a range with one 32-bit word. The simulated memory keeps only the pattern, so this costs little
    /// heap.
    ///
    /// @param address a multiple of 4
    /// @param count number of words
    /// @param value the word
    public void fillWords(long address, long count, int value) {
        view.fill(address, 4 * count, value);
    }

    /// Returns how many 32-bit words of a range differ from `first + step × index`. This is fast for ranges
    /// that were filled.
    ///
    /// @param address a multiple of 4
    /// @param count number of words
    /// @param first the word expected at index 0
    /// @param step 0 for one value everywhere, 1 for a sequence
    public long countMismatches(long address, long count, int first, int step) {
        WordScanner scanner = new WordScanner(first, step);
        view.forEachRun(address, 4 * count, scanner);
        return scanner.mismatches();
    }

    private void read(long address, byte[] target) {
        view.forEachRun(address, target.length, new HostSink(MemorySegment.ofArray(target), address));
    }
}
