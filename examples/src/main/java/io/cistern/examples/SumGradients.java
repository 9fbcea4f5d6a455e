package io.cistern.examples;

import io.cistern.Allocators;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaDriver;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.DataType;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.ReductionOp;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Sums the gradients of all GPUs with NCCL. The buffers of a region come from `ncclMemAlloc` and are
/// registered with the communicators; later allocations come from the current allocator again.
///
/// Runs on all GPUs of the machine, or on simulated ones if there is no GPU: `-Dcistern.simulated.devices=2`.
public final class SumGradients {
    private static final int COUNT = 1 << 18;

    private final CudaDriver driver = DeviceMemory.system().driver();
    private final List<Long> streams = new ArrayList<>();

    private SumGradients() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        new SumGradients().run();
    }

    private void run() {
        Nccl nccl = Nccl.system();
        List<Communicator> ranks =
                nccl.initAll(IntStream.range(0, driver.devices().count()).toArray());
        ranks.forEach(rank -> streams.add(driver.streams().create(rank.device())));
        try (MemoryPool pool = MemoryPool.of("nccl");
                Scope _ = pool.enter()) {
            ranks.forEach(rank -> rank.register(pool));
            sum(nccl, ranks, ranks.stream().map(this::gradients).toList());
            System.out.printf("in the scope: %d blocks from ncclMemAlloc%n", allocations(pool));
        }
        try (DeviceBuffer _ = DeviceBuffer.allocate(Float.BYTES * COUNT, streams.getFirst())) {
            System.out.printf(
                    "after it: %d block from %s%n",
                    Allocators.current().statistics(0).liveBlocks(),
                    Allocators.current().name());
        }
        ranks.forEach(Communicator::close);
    }

    /// Allocates the gradients of a rank; here each is the rank's number plus 1.
    private DeviceBuffer gradients(Communicator rank) {
        long stream = streams.get(rank.rank());
        DeviceBuffer buffer = DeviceBuffer.allocate(Float.BYTES * COUNT, rank.device(), stream);
        int one = Float.floatToRawIntBits(1 + rank.rank());
        driver.copies().fillWords(rank.device(), buffer.address(), one, COUNT, stream);
        return buffer;
    }

    private void sum(Nccl nccl, List<Communicator> ranks, List<DeviceBuffer> gradients) {
        nccl.group(() -> {
            for (Communicator rank : ranks) {
                DeviceBuffer own = gradients.get(rank.rank());
                rank.allReduce(own, DataType.FLOAT32, ReductionOp.SUM, own.stream());
            }
        });
        for (DeviceBuffer buffer : gradients) {
            System.out.printf("device %d has the sum %.0f%n", buffer.device(), last(buffer));
            buffer.close();
        }
    }

    private float last(DeviceBuffer buffer) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(ValueLayout.JAVA_FLOAT);
            long at = buffer.address() + buffer.byteSize() - Float.BYTES;
            driver.copies().toHost(buffer.device(), host, at, Float.BYTES, buffer.stream());
            driver.streams().synchronize(buffer.device(), buffer.stream());
            return host.get(ValueLayout.JAVA_FLOAT, 0);
        }
    }

    private long allocations(MemoryPool pool) {
        return IntStream.range(0, streams.size())
                .mapToLong(device -> pool.statistics(device).allocations())
                .sum();
    }
}
