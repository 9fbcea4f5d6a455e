package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Collectors;

/// Runs a random sequence of allocations and frees at the device's true capacity and reports which of them are
/// served. `oom_peers.py` runs the same sequence with PyTorch. From some point on the sequence wants more than
/// the device has, so each allocator refuses some requests; fewer refusals mean less fragmentation.
///
/// Arguments: the allocator; a file for the sequence (`a,ID,BYTES` and `f,ID`), which is read if it exists; the
/// seed (1). Prints one line of JSON, and the report of the first refusal on standard error.
public final class OutOfMemorySequence {
    private static final int OPERATIONS = 1200;

    /// The sequence's peak if all requests were served, as a share of the device.
    private static final double WANTED = 1.05;

    private final DeviceMemory memory;
    private final long stream;
    private final Map<Integer, Long> live = new HashMap<>();
    private final List<Integer> refused = new ArrayList<>();
    private int served;
    private long firstRefusalNanos;

    private OutOfMemorySequence(DeviceMemory memory, long stream) {
        this.memory = memory;
        this.stream = stream;
    }

    /// Runs the sequence.
    ///
    /// @param arguments as above
    /// @throws IOException if the file can't be read or written
    public static void main(String[] arguments) throws IOException {
        Path file = Path.of(arguments[1]);
        long seed = arguments.length > 2 ? Long.parseLong(arguments[2]) : 1;
        try (OpenMemory open = new OpenMemory(arguments[0]);
                Registration _ = open.memory().listeners().onCompaction(WorkPause.ofOneThread())) {
            if (!Files.exists(file)) {
                write(file, open.driver().devices().totalBytes(0), seed);
            }
            OutOfMemorySequence sequence = new OutOfMemorySequence(open.memory(), open.newStream());
            sequence.run(Files.readAllLines(file));
            sequence.print(arguments[0]);
        }
    }

    /// Draws sizes evenly over their powers of two, from a 4096th to a 12th of the device.
    private static void write(Path file, long deviceBytes, long seed) throws IOException {
        SplittableRandom random = new SplittableRandom(seed);
        List<long[]> alive = new ArrayList<>();
        long aliveBytes = 0;
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
            for (int id = 0; id < OPERATIONS; id++) {
                long byteSize = (long) (deviceBytes / 4096.0 * Math.pow(4096.0 / 12, random.nextDouble()));
                while (aliveBytes + byteSize > WANTED * deviceBytes || (random.nextInt(3) == 0 && alive.size() > 40)) {
                    long[] freed = alive.remove(random.nextInt(alive.size()));
                    aliveBytes -= freed[1];
                    out.println("f," + freed[0]);
                }
                alive.add(new long[] {id, byteSize});
                aliveBytes += byteSize;
                out.println("a," + id + "," + byteSize);
            }
        }
    }

    private void run(List<String> lines) {
        for (String line : lines) {
            String[] fields = line.split(",", -1);
            int id = Integer.parseInt(fields[1]);
            if (fields[0].equals("a")) {
                allocate(id, Long.parseLong(fields[2]));
            } else {
                Long address = live.remove(id);
                if (address != null) {
                    memory.free(address, stream);
                }
            }
        }
        live.values().forEach(address -> memory.free(address, stream));
    }

    private void allocate(int id, long byteSize) {
        long begun = System.nanoTime();
        try {
            live.put(id, memory.allocate(byteSize, 0, stream));
            served++;
        } catch (DeviceOutOfMemoryException full) {
            if (refused.isEmpty()) {
                firstRefusalNanos = System.nanoTime() - begun;
                full.report().ifPresent(report -> System.err.println(report.text()));
            }
            refused.add(id);
        }
    }

    private void print(String spec) {
        System.out.printf(
                Locale.ROOT,
                "{\"allocator\": \"%s\", \"row\": \"sequence\", \"served\": %d, \"refused\": %d, "
                        + "\"millis_of_first_refusal\": %.2f, \"refused_ids\": [%s]}%n",
                spec,
                served,
                refused.size(),
                firstRefusalNanos / 1e6,
                refused.stream().map(String::valueOf).collect(Collectors.joining(", ")));
    }
}
