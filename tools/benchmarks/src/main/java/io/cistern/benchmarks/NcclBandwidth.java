package io.cistern.benchmarks;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.ReductionOp;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;

/// Measures all-reduce between the GPUs of this process from 8 B to 1 GiB: from plain memory, from a registered
/// pool and from a window, beside the same from C and from PyTorch. The peers' programs answer one request at a
/// time between ours, so that one run measures all.
///
/// A figure is the time of one all-reduce out of many that are enqueued one after another: in place, `FLOAT32`,
/// sum, the median of the rounds. Below 2 MiB the host decides, so there are twelve times as many rounds, and
/// `overMicros` is the median difference between our round and the peer's round after it, which cancels the
/// host's effect on both. Our calling threads and C++'s stay on the same processor, because a virtual machine's
/// processors differ; PyTorch's are free, because it needs two. A warm-up compiles the path to NCCL first. The
/// bus bandwidth of n ranks is size ÷ time × 2 (n − 1) ÷ n.
///
/// Arguments: rounds (5), the largest size in bytes (1 GiB), then the peers, each a command in one argument.
/// Prints a line of JSON for each program, kind of memory and size.
public final class NcclBandwidth {
    private static final List<String> KINDS = List.of("plain", "registered", "window");
    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;

    /// The approximate time spent on one figure.
    private static final double FIGURE_MICROS = 40_000;

    private static final double SMALL_FIGURE_MICROS = 10_000;
    private static final int SMALL_ROUNDS = 12;

    /// The same as in `nccl_peers.cu`; not the first processor, which systems use for themselves.
    private static final int PROCESSOR = 2;

    /// Enough calls for the JVM's best compiler, for each kind of memory.
    private static final int WARM_UP = 20_000;

    private final OpenMemory open = new OpenMemory("caching");
    private final DeviceMemory memory = open.memory();
    private final CudaDriver driver = open.driver();
    private final Nccl nccl = Nccl.of(memory);
    private final List<Communicator> ranks;
    private final long[] streams;
    private final Map<String, long[]> buffers = new LinkedHashMap<>();
    private final List<Peer> peers = new ArrayList<>();

    private NcclBandwidth(long largest) {
        int[] devices = new int[driver.devices().count()];
        Arrays.setAll(devices, i -> i);
        ranks = nccl.initAll(devices);
        streams = ranks.stream()
                .mapToLong(rank -> driver.streams().create(rank.device()))
                .toArray();
        buffers.put("plain", buffers(memory.open("direct"), largest));
        MemoryPool registered = memory.pools().open("nccl");
        ranks.forEach(rank -> rank.register(registered));
        buffers.put("registered", buffers(registered, largest));
        MemoryPool symmetric = memory.pools().open("symmetric:largest=1GiB,bytes=" + Math.max(largest, 2 * MIB));
        buffers.put("window", buffers(symmetric, largest));
        try {
            nccl.registerWindows(ranks, symmetric);
        } catch (UnsupportedOperationException noWindows) {
            System.err.println(noWindows.getMessage());
            buffers.remove("window");
        }
    }

    /// Measures and prints.
    public static void main(String[] arguments) throws IOException {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 5;
        long largest = arguments.length > 1 ? Long.parseLong(arguments[1]) : GIB;
        NcclBandwidth bandwidth = new NcclBandwidth(largest);
        for (int i = 2; i < arguments.length; i++) {
            bandwidth.peers.add(new Peer(arguments[i]));
        }
        OneProcessor.pin(PROCESSOR);
        bandwidth.buffers.keySet().forEach(kind -> bandwidth.micros(kind, Float.BYTES * 2, WARM_UP));
        bandwidth.measure(rounds, largest);
        System.exit(0); // Everything that is still open ends with the process.
    }

    private long[] buffers(Allocator from, long byteSize) {
        return buffers(i -> from.allocate(byteSize, i, streams[i]), byteSize);
    }

    private long[] buffers(MemoryPool from, long byteSize) {
        return buffers(i -> from.allocate(byteSize, i, streams[i]), byteSize);
    }

    private long[] buffers(IntToLongFunction from, long byteSize) {
        long[] addresses = new long[streams.length];
        for (int i = 0; i < addresses.length; i++) {
            addresses[i] = from.applyAsLong(i);
            driver.copies().fillBytes(i, addresses[i], (byte) 0, byteSize, streams[i]);
            driver.streams().synchronize(i, streams[i]);
        }
        return addresses;
    }

    /// Measures powers of 8 up to 256 KiB, then powers of 2, because there the kinds of memory differ.
    private void measure(int rounds, long largest) throws IOException {
        for (long byteSize = 8; byteSize < Math.min(largest, MIB); byteSize *= 8) {
            measureSize(byteSize, SMALL_ROUNDS * rounds, SMALL_FIGURE_MICROS);
        }
        for (long byteSize = MIB; byteSize <= largest; byteSize *= 2) {
            boolean small = byteSize == MIB;
            measureSize(byteSize, small ? SMALL_ROUNDS * rounds : rounds, small ? SMALL_FIGURE_MICROS : FIGURE_MICROS);
        }
    }

    private void measureSize(long byteSize, int rounds, double figureMicros) throws IOException {
        Map<String, List<Double>> taken = new LinkedHashMap<>();
        int count = (int) Math.clamp(figureMicros / guessedMicros(byteSize), 3, 2000);
        for (int round = 0; round < rounds; round++) {
            for (String kind : KINDS) {
                if (buffers.containsKey(kind)) {
                    add(taken, "cistern " + kind, micros(kind, byteSize, count));
                }
                for (Peer peer : peers) {
                    add(taken, peer.name + " " + kind, peer.micros(kind, byteSize, count));
                }
            }
        }
        taken.forEach((who, all) -> print(who, byteSize, all, over(taken, who)));
    }

    /// Returns the median difference between our time and a peer's in the same round; 0 for ours.
    private static double over(Map<String, List<Double>> taken, String who) {
        List<Double> ours = Objects.requireNonNull(taken.get("cistern " + who.substring(who.lastIndexOf(' ') + 1)));
        List<Double> theirs = Objects.requireNonNull(taken.get(who));
        return median(IntStream.range(0, Math.min(ours.size(), theirs.size()))
                .mapToObj(i -> ours.get(i) - theirs.get(i))
                .toList());
    }

    private static double median(List<Double> all) {
        return all.stream().sorted().skip(all.size() / 2).findFirst().orElseThrow();
    }

    private static double guessedMicros(long byteSize) {
        return 15 + byteSize / 300e3;
    }

    private static void add(Map<String, List<Double>> taken, String who, double micros) {
        if (micros > 0) {
            taken.computeIfAbsent(who, _ -> new ArrayList<>()).add(micros);
        }
    }

    private double micros(String kind, long byteSize, int count) {
        long[] addresses = Objects.requireNonNull(buffers.get(kind));
        for (int i = 0; i < count / 4 + 1; i++) {
            allReduce(addresses, byteSize);
        }
        synchronize();
        long begin = System.nanoTime();
        for (int i = 0; i < count; i++) {
            allReduce(addresses, byteSize);
        }
        synchronize();
        return (System.nanoTime() - begin) / 1e3 / count;
    }

    private void allReduce(long[] addresses, long byteSize) {
        nccl.group(() -> {
            for (int i = 0; i < streams.length; i++) {
                long address = addresses[i];
                ranks.get(i)
                        .allReduce(
                                address,
                                address,
                                byteSize / Float.BYTES,
                                DataType.FLOAT32,
                                ReductionOp.SUM,
                                streams[i]);
            }
        });
    }

    private void synchronize() {
        for (int i = 0; i < streams.length; i++) {
            driver.streams().synchronize(i, streams[i]);
        }
    }

    private void print(String allocator, long byteSize, List<Double> all, double overMicros) {
        double micros = median(all);
        int n = streams.length;
        double gigabytes = byteSize / micros / 1e3 * 2 * (n - 1) / n;
        System.out.printf(
                Locale.ROOT,
                "{\"allocator\":\"%s\",\"byteSize\":%d,\"ranks\":%d,\"micros\":%.2f,\"lowestMicros\":%.2f,"
                        + "\"highestMicros\":%.2f,\"rounds\":%d,\"overMicros\":%.2f,\"busGigabytesPerSecond\":%.2f,\"nccl\":\"%s\"}%n",
                allocator,
                byteSize,
                n,
                micros,
                Collections.min(all),
                Collections.max(all),
                all.size(),
                overMicros,
                gigabytes,
                nccl.description());
    }

    /// A program that answers requests on its standard input.
    private static final class Peer {
        final String name;
        private final PrintWriter requests;
        private final BufferedReader answers;

        Peer(String command) throws IOException {
            String[] words = command.split(" ", -1);
            name = words[words.length - 2].replaceAll(".*/", "");
            Process process = new ProcessBuilder(words)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            requests = new PrintWriter(process.getOutputStream(), true, StandardCharsets.UTF_8);
            answers = process.inputReader(StandardCharsets.UTF_8);
            Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(process::destroy));
        }

        /// Returns microseconds, or -1 if the program has no such kind of memory or has ended.
        double micros(String kind, long byteSize, int count) throws IOException {
            requests.println(kind + " " + byteSize + " " + count);
            String answer = answers.readLine();
            return answer == null ? -1 : Double.parseDouble(answer);
        }
    }
}
