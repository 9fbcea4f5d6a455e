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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;

/// Measures all-reduce between the GPUs of this process from 8 B to 1 GiB: from plain memory, from a registered pool
/// and from a window, against the same from C and from PyTorch. The peers' programs answer one request at a
/// time between ours.
///
/// A figure is the time of one all-reduce out of many that are enqueued one after another: in place, `FLOAT32`, sum,
/// the median of the rounds. Below 2 MiB the host decides, so there are twelve times as many rounds;
/// `overMicros` is the median difference between our round and the peer's round after it, which cancels the
/// host's effect. Our calling threads and C++'s stay on one processor, because a virtual machine's processors
/// differ; PyTorch's are free, because it needs two.
///
/// Arguments: rounds (5), the largest size in bytes (1 GiB), then the peers, each a command in one argument.
public final class NcclBandwidth {
    private static final List<String> KINDS = List.of("plain", "registered", "window");
    private static final long MIB = 1L << 20;

    /// The time spent on one figure, nearly.
    private static final double FIGURE_MICROS = 40_000;

    private static final double SMALL_FIGURE_MICROS = 10_000;
    private static final int SMALL_ROUNDS = 12;

    /// The same as in `nccl_peers.cu`; not the first processor, which systems use for themselves.
    private static final int PROCESSOR = 2;

    /// Enough calls for the JVM's best compiler, for each kind of memory.
    private static final int WARM_UP = 20_000;

    private final OpenMemory open = new OpenMemory("caching");
    private final CudaDriver driver = open.driver();
    private final Nccl nccl = Nccl.of(open.memory());
    private final List<Communicator> ranks;
    private final long[] streams;
    private final Map<String, long[]> buffers = new LinkedHashMap<>();
    private final List<Peer> peers = new ArrayList<>();

    private NcclBandwidth(long largest) {
        DeviceMemory memory = open.memory();
        ranks = nccl.initAll(IntStream.range(0, driver.devices().count()).toArray());
        streams = ranks.stream()
                .mapToLong(rank -> driver.streams().create(rank.device()))
                .toArray();
        Allocator direct = memory.open("direct");
        buffers.put("plain", buffers(largest, i -> direct.allocate(largest, i, streams[i])));
        MemoryPool registered = memory.pools().open("nccl");
        ranks.forEach(rank -> rank.register(registered));
        buffers.put("registered", buffers(largest, i -> registered.allocate(largest, i, streams[i])));
        MemoryPool symmetric = memory.pools().open("symmetric:largest=1GiB,bytes=" + Math.max(largest, 2 * MIB));
        buffers.put("window", buffers(largest, i -> symmetric.allocate(largest, i, streams[i])));
        try {
            nccl.registerWindows(ranks, symmetric);
        } catch (UnsupportedOperationException noWindows) {
            System.err.println(noWindows.getMessage());
            buffers.remove("window");
        }
    }

    /// Measures and prints a line for each program, kind of memory and size.
    public static void main(String[] arguments) throws IOException {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 5;
        long largest = arguments.length > 1 ? Long.parseLong(arguments[1]) : 1L << 30;
        NcclBandwidth bandwidth = new NcclBandwidth(largest);
        for (int i = 2; i < arguments.length; i++) {
            bandwidth.peers.add(new Peer(arguments[i]));
        }
        OneProcessor.pin(PROCESSOR);
        bandwidth.buffers.keySet().forEach(kind -> bandwidth.micros(kind, Float.BYTES * 2, WARM_UP));
        for (long byteSize = 8; byteSize < Math.min(largest, MIB); byteSize *= 8) {
            bandwidth.measure(byteSize, SMALL_ROUNDS * rounds, SMALL_FIGURE_MICROS);
        }
        for (long byteSize = MIB; byteSize <= largest; byteSize *= 2) { // Here the kinds of memory differ.
            boolean small = byteSize == MIB;
            bandwidth.measure(
                    byteSize, small ? SMALL_ROUNDS * rounds : rounds, small ? SMALL_FIGURE_MICROS : FIGURE_MICROS);
        }
        System.exit(0); // Everything that is still open ends with the process.
    }

    private long[] buffers(long byteSize, IntToLongFunction from) {
        long[] addresses = new long[streams.length];
        Arrays.setAll(addresses, from);
        for (int i = 0; i < addresses.length; i++) {
            driver.copies().fillBytes(i, addresses[i], (byte) 0, byteSize, streams[i]);
            driver.streams().synchronize(i, streams[i]);
        }
        return addresses;
    }

    private void measure(long byteSize, int rounds, double figureMicros) throws IOException {
        Map<String, List<Double>> taken = new LinkedHashMap<>();
        int count = (int) Math.clamp(figureMicros / (15 + byteSize / 300e3), 3, 2000);
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
        taken.forEach((who, all) -> print(who, byteSize, new Samples(all), over(taken, who)));
    }

    /// @param micros -1 if there is no such figure
    private static void add(Map<String, List<Double>> taken, String who, double micros) {
        if (micros > 0) {
            taken.computeIfAbsent(who, _ -> new ArrayList<>()).add(micros);
        }
    }

    /// Returns the median difference between our time and a peer's in the same round; 0 for ours.
    private static double over(Map<String, List<Double>> taken, String who) {
        List<Double> ours = Objects.requireNonNull(taken.get("cistern " + who.substring(who.lastIndexOf(' ') + 1)));
        List<Double> theirs = Objects.requireNonNull(taken.get(who));
        return new Samples(IntStream.range(0, Math.min(ours.size(), theirs.size()))
                        .mapToObj(i -> ours.get(i) - theirs.get(i))
                        .toList())
                .median();
    }

    private double micros(String kind, long byteSize, int count) {
        long[] addresses = Objects.requireNonNull(buffers.get(kind));
        allReduce(addresses, byteSize, count / 4 + 1);
        long begin = System.nanoTime();
        allReduce(addresses, byteSize, count);
        return (System.nanoTime() - begin) / 1e3 / count;
    }

    private void allReduce(long[] addresses, long byteSize, int count) {
        for (int times = 0; times < count; times++) {
            nccl.group(() -> {
                for (int i = 0; i < streams.length; i++) {
                    long address = addresses[i];
                    long length = byteSize / Float.BYTES;
                    ranks.get(i).allReduce(address, address, length, DataType.FLOAT32, ReductionOp.SUM, streams[i]);
                }
            });
        }
        for (int i = 0; i < streams.length; i++) {
            driver.streams().synchronize(i, streams[i]);
        }
    }

    private void print(String allocator, long byteSize, Samples micros, double overMicros) {
        int n = streams.length;
        Json.print(
                "allocator", allocator,
                "byteSize", byteSize,
                "ranks", n,
                "micros", Json.rounded(micros.median(), 2),
                "lowestMicros", Json.rounded(micros.least(), 2),
                "highestMicros", Json.rounded(micros.most(), 2),
                "rounds", micros.count(),
                "overMicros", Json.rounded(overMicros, 2),
                "busGigabytesPerSecond", Json.rounded(byteSize / micros.median() / 1e3 * 2 * (n - 1) / n, 2),
                "nccl", nccl.description());
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
