package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import java.util.Locale;

/// Blocks that one stream works on and others read, freed while those still run: what it costs to keep the memory from
/// being given out too early.
///
/// Three ways, over the same pools of the driver:
///
/// - `fenced`: what `async` does. The driver hears of the free when the other streams have got past it.
/// - `awaited`: what the framework does for an allocator that can't wait: the stream of the free waits for the others.
/// - `unifier`: one stream for all such frees waits for the stream of the free and the others, and frees there.
///
/// The load: a stream fills a block, two others copy from it, the block is freed. One of the two, the slow one, copies
/// [#SLOW] times as often. So a way that lets blocks wait for streams that don't use them holds more memory, and
/// one that holds up the first stream takes longer. Every fourth block is used on the slow stream.
///
/// Arguments: blocks (2000). Prints a line of JSON for each way: host nanoseconds a block, milliseconds until the first
/// stream and all streams are done, the most memory reserved. On a simulated GPU times are virtual.
public final class CrossStreamFrees {
    private static final long BYTE_SIZE = 8 << 20;
    private static final int SLOW = 8;

    /// First, until the compiler has seen all of it: whichever way came first would pay for that.
    private static final int WARM_UP = 30_000;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final Way way;
    private final long work;
    private final long quick;
    private final long slow;
    private final long unifier;
    private final long event;
    private final long scratch;

    private enum Way {
        FENCED,
        AWAITED,
        UNIFIER
    }

    private CrossStreamFrees(OpenMemory open, Way way) {
        this.driver = open.driver();
        this.memory = open.memory();
        this.way = way;
        work = open.newStream();
        quick = open.newStream();
        slow = open.newStream();
        unifier = open.newStream();
        event = driver.events().create(0);
        scratch = driver.memory().allocate(0, BYTE_SIZE);
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        int blocks = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 2000;
        for (Way way : Way.values()) {
            try (OpenMemory open = new OpenMemory("async")) {
                CrossStreamFrees load = new CrossStreamFrees(open, way);
                if (!open.driver().simulated()) {
                    load.run(WARM_UP);
                    load.memory.current(0).resetPeaks(0);
                }
                load.measure(blocks);
                load.driver.memory().free(0, load.scratch);
            }
        }
    }

    private void measure(int blocks) {
        driver.devices().synchronize(0);
        long begin = nanos();
        long spent = run(blocks);
        driver.streams().synchronize(0, work);
        long workDone = nanos() - begin;
        driver.devices().synchronize(0);
        long allDone = nanos() - begin;
        long reserved = memory.current(0).memoryStatistics(0).getOrDefault("reserved_bytes.all.peak", 0L);
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"cross-stream frees\",\"allocator\":\"%s\",\"device\":\"%s\",\"blocks\":%d,"
                        + "\"nanosPerFree\":%.0f,\"workMillis\":%.2f,\"allMillis\":%.2f,\"reservedPeakBytes\":%d}%n",
                way.name().toLowerCase(Locale.ROOT),
                driver.simulated() ? "simulated" : "cuda:0",
                blocks,
                (double) spent / blocks,
                workDone / 1e6,
                allDone / 1e6,
                reserved);
    }

    /// Virtual time on a simulated GPU.
    private long nanos() {
        return driver instanceof SimulatedGpu gpu ? gpu.virtualNanos() : System.nanoTime();
    }

    /// @return nanoseconds of the host in recorded uses and frees
    private long run(int blocks) {
        long spent = 0;
        for (int i = 0; i < blocks; i++) {
            long other = i % 4 == 0 ? slow : quick;
            long address = memory.allocate(BYTE_SIZE, 0, work);
            driver.copies().fillBytes(0, address, (byte) i, BYTE_SIZE, work);
            copyOn(other, address);
            long begin = nanos();
            free(address, other);
            spent += nanos() - begin;
        }
        return spent;
    }

    private void copyOn(long other, long address) {
        driver.events().record(0, event, work);
        driver.streams().await(0, other, event);
        Copies copies = driver.copies();
        for (int i = 0; i < (other == slow ? SLOW : 1); i++) {
            copies.onDevice(0, scratch, address, BYTE_SIZE, other);
        }
    }

    private void free(long address, long other) {
        switch (way) {
            case FENCED -> {
                memory.recordUse(address, other);
                memory.free(address, work);
            }
            case AWAITED -> {
                await(work, other);
                memory.free(address, work);
            }
            case UNIFIER -> {
                await(unifier, work);
                await(unifier, other);
                memory.free(address, unifier);
            }
        }
    }

    private void await(long stream, long awaited) {
        driver.events().record(0, event, awaited);
        driver.streams().await(0, stream, event);
    }
}
