package io.cistern.testkit;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/// Writes patterns into device memory and checks later that they are intact, both in stream order. So a
/// check detects any write in between, such as one through an overlapping block, a block handed out again
/// too early, or a page mapped twice.
///
/// ```text
/// block of n bytes:   seed, seed+1, seed+2, …  as 32-bit words      the last 0 to 3 bytes:
/// the seed's lowest byte
/// large block:        EDGE of such words | words that all equal the seed | EDGE of such words
/// ```
///
/// Each check has a slot of 16 bytes on the device: 8 bytes count wrong words, and 8 hold the rest of
/// the block. [#mismatches()] waits for the device, reads all slots in use together and names the
/// blocks whose contents differ.
///
/// **Threads.** Any thread may call any method at any time.
public final class Patterns implements AutoCloseable {
    /// Larger blocks have one value in their middle instead of a sequence: a simulated GPU keeps a fill
    /// without storing its bytes.
    private static final long LARGE = 256L << 10;

    /// A page of the smallest kind at each end of a large block, because neighbours overlap at the ends first.
    private static final long EDGE = 64L << 10;

    /// The maximum number of open checks. One more check first reads them all, which waits for the device.
    private static final int SLOTS = 1 << 14;

    private static final long SLOT_BYTES = 2L * Long.BYTES;
    private static final long REST = Long.BYTES;

    /// The amount that the driver takes at once for small allocations. The slots take all of it, so that the
    /// loss of one byte elsewhere takes another chunk and shows.
    private static final long CHUNK = 2L << 20;

    private final CudaDriver driver;
    private final int device;
    private final MemoryKernels kernels;
    private final long slots;
    /// Host memory for reading the slots. Allocated once, because allocating takes longer than reading.
    private final MemorySegment read;

    private final List<Check> open = new ArrayList<>();
    private final List<Mismatch> found = new ArrayList<>();

    /// A block whose contents differ from its pattern.
    record Mismatch(long address, int seed, String text) {}

    private record Check(long address, long byteSize, int seed, long stream) {
        int rest() {
            return (int) (byteSize % Integer.BYTES);
        }

        long restAddress() {
            return address + byteSize - rest();
        }
    }

    /// Prepares checks on one device: takes 2 MiB of its memory by `cuMemAlloc` and some pinned memory, and loads
    /// the kernels.
    ///
    /// @param driver the driver
    /// @param device the device whose memory is checked
    public Patterns(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
        this.kernels = MemoryKernels.load(driver, device);
        this.slots = driver.memory().allocate(device, CHUNK);
        this.read = driver.memory().allocateHost(device, SLOTS * SLOT_BYTES);
        clear(SLOTS);
    }

    /// Writes a pattern.
    ///
    /// @param address a multiple of 4
    /// @param byteSize any size in bytes; 0 does nothing
    /// @param seed the seed of the pattern
    /// @param stream the stream that writes
    public void write(long address, long byteSize, int seed, long stream) {
        Check block = new Check(address, byteSize, seed, stream);
        if (byteSize > LARGE) {
            driver.copies().fillWords(device, address + EDGE, seed, middleWords(byteSize), stream);
            kernels.writeSequence(address, EDGE / Integer.BYTES, seed, stream);
            kernels.writeSequence(block.restAddress() - EDGE, EDGE / Integer.BYTES, seed, stream);
        } else if (byteSize >= Integer.BYTES) {
            kernels.writeSequence(address, byteSize / Integer.BYTES, seed, stream);
        }
        driver.copies().fillBytes(device, block.restAddress(), (byte) seed, block.rest(), stream);
    }

    /// Enqueues a check of a pattern on a stream; [#mismatches()] gives the result.
    ///
    /// @param address the address that was written
    /// @param byteSize the size that was written, in bytes
    /// @param seed the seed that was written
    /// @param stream the stream that reads
    public synchronized void verify(long address, long byteSize, int seed, long stream) {
        if (open.size() == SLOTS) {
            readSlots();
        }
        Check check = new Check(address, byteSize, seed, stream);
        long slot = slots + open.size() * SLOT_BYTES;
        open.add(check);
        countMismatches(check, slot);
        driver.copies().onDevice(device, slot + REST, check.restAddress(), check.rest(), stream);
    }

    private void countMismatches(Check check, long counter) {
        long address = check.address();
        if (check.byteSize() > LARGE) {
            long edgeWords = EDGE / Integer.BYTES;
            kernels.countSequenceMismatches(address, edgeWords, check.seed(), counter, check.stream());
            kernels.countMismatches(
                    address + EDGE, middleWords(check.byteSize()), check.seed(), counter, check.stream());
            kernels.countSequenceMismatches(
                    check.restAddress() - EDGE, edgeWords, check.seed(), counter, check.stream());
        } else if (check.byteSize() >= Integer.BYTES) {
            long words = check.byteSize() / Integer.BYTES;
            kernels.countSequenceMismatches(address, words, check.seed(), counter, check.stream());
        }
    }

    private static long middleWords(long byteSize) {
        return (byteSize - 2 * EDGE) / Integer.BYTES;
    }

    /// Waits for the device and returns the mismatches since the last call.
    ///
    /// @return one line for each check that failed
    public List<String> mismatches() {
        return takeMismatches().stream().map(Mismatch::text).toList();
    }

    synchronized List<Mismatch> takeMismatches() {
        readSlots();
        List<Mismatch> all = List.copyOf(found);
        found.clear();
        return all;
    }

    private void readSlots() {
        driver.devices().synchronize(device);
        if (open.isEmpty()) {
            return;
        }
        driver.copies().toHost(device, read, slots, open.size() * SLOT_BYTES, 0);
        driver.devices().synchronize(device);
        for (int slot = 0; slot < open.size(); slot++) {
            judge(open.get(slot), slot * SLOT_BYTES);
        }
        clear(open.size());
        open.clear();
    }

    private void judge(Check check, long offset) {
        long wrongWords = read.get(ValueLayout.JAVA_LONG, offset);
        int wrongBytes = 0;
        for (int i = 0; i < check.rest(); i++) {
            if (read.get(ValueLayout.JAVA_BYTE, offset + REST + i) != (byte) check.seed()) {
                wrongBytes++;
            }
        }
        if (wrongWords != 0 || wrongBytes != 0) {
            String text =
                    "block 0x%x of %d bytes with pattern %d, read on stream 0x%x: %d words and %d trailing bytes differ"
                            .formatted(
                                    check.address(),
                                    check.byteSize(),
                                    check.seed(),
                                    check.stream(),
                                    wrongWords,
                                    wrongBytes);
            found.add(new Mismatch(check.address(), check.seed(), text));
        }
    }

    private void clear(int count) {
        driver.copies().fillWords(device, slots, 0, count * SLOT_BYTES / Integer.BYTES, 0);
        driver.devices().synchronize(device);
    }

    /// Frees the slots, the pinned memory and the kernels. Open checks are forgotten.
    @Override
    public void close() {
        driver.memory().free(device, slots);
        driver.memory().freeHost(device, read);
        kernels.close();
    }
}
