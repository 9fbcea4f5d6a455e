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
import java.util.Map;
import java.util.SplittableRandom;

/// Runs a random sequence of allocations and frees at the device's true capacity, as `oom_peers.py` does with PyTorch.
/// From some point on the sequence wants more than the device has; fewer refusals mean less fragmentation.
///
/// Arguments: the allocator; a file for the sequence (`a,ID,BYTES` and `f,ID`), which is read if it exists; the
/// seed (1). Prints a line, and the report of the first refusal on standard error.
public final class OutOfMemorySequence {
    private static final int OPERATIONS = 1200;

    /// The sequence's peak if all requests were served, as a share of the device.
    private static final double WANTED = 1.05;

    private OutOfMemorySequence() {}

    /// Runs the sequence.
    public static void main(String[] arguments) throws IOException {
        Path file = Path.of(arguments[1]);
        try (OpenMemory open = new OpenMemory(arguments[0]);
                Registration _ = open.memory().listeners().onCompaction(WorkPause.ofOneThread())) {
            if (!Files.exists(file)) {
                long seed = arguments.length > 2 ? Long.parseLong(arguments[2]) : 1;
                write(file, open.driver().devices().totalBytes(0), seed);
            }
            run(arguments[0], open.memory(), open.newStream(), Files.readAllLines(file));
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

    private static void run(String spec, DeviceMemory memory, long stream, List<String> lines) {
        Map<String, Long> live = new HashMap<>();
        List<Integer> refused = new ArrayList<>();
        long firstRefusalNanos = 0;
        int served = 0;
        for (String line : lines) {
            String[] fields = line.split(",", -1);
            if (fields[0].equals("f")) {
                memory.free(live.getOrDefault(fields[1], 0L), stream); // 0 if it was refused
                live.remove(fields[1]);
                continue;
            }
            long begun = System.nanoTime();
            try {
                live.put(fields[1], memory.allocate(Long.parseLong(fields[2]), 0, stream));
                served++;
            } catch (DeviceOutOfMemoryException full) {
                if (refused.isEmpty()) {
                    firstRefusalNanos = System.nanoTime() - begun;
                    full.report().ifPresent(report -> System.err.println(report.text()));
                }
                refused.add(Integer.parseInt(fields[1]));
            }
        }
        live.values().forEach(address -> memory.free(address, stream));
        Json.print(
                "allocator",
                spec,
                "row",
                "sequence",
                "served",
                served,
                "refused",
                refused.size(),
                "millis_of_first_refusal",
                Json.rounded(firstRefusalNanos / 1e6, 2),
                "refused_ids",
                refused);
    }
}
