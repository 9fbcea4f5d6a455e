package io.cistern.cuda.kernels;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Modules;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/// Kernels that block a stream, write patterns and check them, for tests and checked replays.
///
/// They are PTX text that is loaded through [CudaDriver#modules()]; the simulated GPU runs Java functions of
/// the same names instead. Each method launches a kernel in stream order and does not wait for it. Addresses
/// are those of device memory or pinned host memory. They must be multiples of 4, and the addresses of counters
/// multiples of 8. Any thread may call.
public final class MemoryKernels implements AutoCloseable {
    private static final String TEXT = "kernels.ptx";
    private static final int THREADS = 256;

    /// Enough to fill the largest GPU; for longer ranges each thread loops.
    private static final int MAX_BLOCKS = 2048;

    private final CudaDriver driver;
    private final int device;
    private final long module;
    private final long latch;
    private final long countMismatches;
    private final long writeSequence;
    private final long countSequenceMismatches;

    private MemoryKernels(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
        module = driver.modules().load(device, ptx());
        latch = function("cistern_latch");
        countMismatches = function("cistern_count_mismatches_u32");
        writeSequence = function("cistern_write_sequence_u32");
        countSequenceMismatches = function("cistern_count_sequence_mismatches_u32");
    }

    /// Loads the kernels into a device's primary context.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses the text
    public static MemoryKernels load(CudaDriver driver, int device) {
        return new MemoryKernels(driver, device);
    }

    /// Returns the text of the module that holds the kernels.
    public static String ptx() {
        try (InputStream text = MemoryKernels.class.getResourceAsStream(TEXT)) {
            if (text == null) {
                throw new IllegalStateException(TEXT + " is missing next to " + MemoryKernels.class.getName());
            }
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private long function(String name) {
        return driver.modules().function(device, module, name);
    }

    /// Blocks a stream until the 32-bit word at an address is no longer 0.
    ///
    /// @param flagAddress address of the word, in pinned host memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void latch(long flagAddress, long stream) {
        driver.modules().launch(device, latch, Modules.Grid.of(1, 1), stream, flagAddress);
    }

    /// Counts the 32-bit words that differ from an expected value, and adds their number to a 64-bit counter.
    ///
    /// @param count number of words
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void countMismatches(long address, long count, int expected, long counterAddress, long stream) {
        driver.modules()
                .launch(
                        device,
                        countMismatches,
                        grid(count),
                        stream,
                        words(address, count, false),
                        count,
                        expected,
                        counter(counterAddress));
    }

    /// Writes the 32-bit words first, first + 1, and so on, modulo 2³².
    ///
    /// @param count number of words
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void writeSequence(long address, long count, int first, long stream) {
        driver.modules().launch(device, writeSequence, grid(count), stream, words(address, count, true), count, first);
    }

    /// Counts the 32-bit words that differ from the sequence that [#writeSequence] writes, and adds their
    /// number to a 64-bit counter.
    ///
    /// @param count number of words
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void countSequenceMismatches(long address, long count, int first, long counterAddress, long stream) {
        driver.modules()
                .launch(
                        device,
                        countSequenceMismatches,
                        grid(count),
                        stream,
                        words(address, count, false),
                        count,
                        first,
                        counter(counterAddress));
    }

    private static Modules.Region words(long address, long count, boolean areWritten) {
        return new Modules.Region(address, Integer.BYTES * count, areWritten);
    }

    /// Additions are atomic, so kernels that count into one counter need no order.
    private static Modules.Region counter(long address) {
        return new Modules.Region(address, Long.BYTES, false);
    }

    private static Modules.Grid grid(long count) {
        return Modules.Grid.of(Math.clamp((count + THREADS - 1) / THREADS, 1, MAX_BLOCKS), THREADS);
    }

    /// Unloads the kernels. All their launches must have finished.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    @Override
    public void close() {
        driver.modules().unload(device, module);
    }
}
