package io.cistern.benchmarks;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.ReductionOp;
import io.cistern.nccl.UniqueId;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;

/// Sums numbers between processes on one host or several, each with one GPU, from registered memory. Rank 0
/// waits for the others at an address and gives them the communicator's id.
///
/// Arguments of each process: `RANK RANKS ADDRESS PORT [BYTES]`. Prints a line of JSON, and ends with 1 if
/// a sum is wrong.
public final class NcclHosts {
    private static final int ROUNDS = 20;
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private NcclHosts() {}

    /// Runs one rank.
    public static void main(String[] arguments) throws IOException, InterruptedException {
        int rank = Integer.parseInt(arguments[0]);
        int ranks = Integer.parseInt(arguments[1]);
        InetAddress address = InetAddress.getByName(arguments[2]);
        int port = Integer.parseInt(arguments[3]);
        long byteSize = arguments.length > 4 ? Long.parseLong(arguments[4]) : 1L << 28;
        Nccl nccl = Nccl.system();
        UniqueId id = rank == 0 ? given(nccl.uniqueId(), ranks, address, port) : taken(address, port);
        try (Communicator communicator = nccl.initRank(id, ranks, rank, 0)) {
            System.exit(isRight(communicator, byteSize) ? 0 : 1);
        }
    }

    private static UniqueId given(UniqueId id, int ranks, InetAddress address, int port) throws IOException {
        try (ServerSocket server = new ServerSocket(port, ranks, address)) {
            for (int i = 1; i < ranks; i++) {
                try (Socket other = server.accept()) {
                    other.getOutputStream().write(id.toBytes());
                }
            }
        }
        return id;
    }

    private static UniqueId taken(InetAddress address, int port) throws IOException, InterruptedException {
        for (long end = System.nanoTime() + PATIENCE.toNanos(); ; ) {
            try (Socket first = new Socket(address, port)) {
                return UniqueId.of(first.getInputStream().readNBytes(UniqueId.BYTES));
            } catch (SocketException notYet) {
                if (System.nanoTime() > end) {
                    throw notYet;
                }
                Thread.sleep(100);
            }
        }
    }

    private static boolean isRight(Communicator rank, long byteSize) {
        try (MemoryPool pool = MemoryPool.of("nccl");
                CudaStream stream = CudaStream.open(DeviceMemory.system(), 0);
                DeviceBuffer numbers = DeviceBuffer.allocate(pool, byteSize, 0, stream.handle())) {
            rank.register(pool);
            numbers.fillWords(Float.floatToRawIntBits(rank.rank() + 1f));
            rank.allReduce(numbers, DataType.FLOAT32, ReductionOp.SUM, stream.handle());
            float sum = numbers.elements(ValueLayout.JAVA_FLOAT).getFloat(byteSize / Float.BYTES - 1);
            boolean right = sum == rank.rankCount() * (rank.rankCount() + 1) / 2f;
            long begin = System.nanoTime();
            for (int i = 0; i < ROUNDS; i++) {
                rank.allReduce(numbers, DataType.FLOAT32, ReductionOp.MAX, stream.handle());
            }
            stream.synchronize();
            double micros = (System.nanoTime() - begin) / 1e3 / ROUNDS;
            Json.print(
                    "rank",
                    rank.rank(),
                    "ranks",
                    rank.rankCount(),
                    "bytes",
                    byteSize,
                    "sum",
                    sum,
                    "right",
                    right,
                    "micros",
                    Json.rounded(micros, 1));
            return right;
        }
    }
}
