package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.netty.buffer.AdaptiveByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.PooledByteBufAllocator;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// Measures Netty's allocators of direct buffers beside `caching` under the same loads: pairs of random sizes
/// over half of the largest, and random exchanges among 64 live blocks of all magnitudes. Netty returns objects
/// and host memory, Cistern returns addresses and GPU memory (simulated if there is no GPU); both are the calls
/// that users make.
///
/// All threads of a run (`-t`) share one allocator. Netty runs with its defaults, except that the fork switches
/// off its leak detector, a sampling debugging aid, with `-Dio.netty.leakDetection.level=disabled`.
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
        value = 3,
        jvmArgsAppend = {"-Dio.netty.leakDetection.level=disabled", "--sun-misc-unsafe-memory-access=allow"})
public class NettyBenchmark {
    private static final int LIVE_BLOCKS = 64;
    private static final long MIXED_MAX_BYTES = 1 << 20;

    /// Netty's allocators.
    public enum Netty {
        POOLED {
            @Override
            ByteBufAllocator open() {
                return PooledByteBufAllocator.DEFAULT;
            }
        },
        ADAPTIVE {
            @Override
            ByteBufAllocator open() {
                return new AdaptiveByteBufAllocator(true, true);
            }
        };

        abstract ByteBufAllocator open();
    }

    /// One Netty allocator for all threads.
    @State(Scope.Benchmark)
    public static class Buffers {
        @Param({"POOLED", "ADAPTIVE"})
        private Netty netty = Netty.POOLED;

        private ByteBufAllocator allocator = ByteBufAllocator.DEFAULT;

        @Setup(Level.Trial)
        public void open() {
            allocator = netty.open();
        }
    }

    /// One device memory for all threads.
    @State(Scope.Benchmark)
    public static class Memory {
        private OpenMemory open;
        private DeviceMemory memory;

        @Setup(Level.Trial)
        public void open() {
            open = new OpenMemory("caching");
            memory = open.memory();
        }

        @TearDown(Level.Trial)
        public void close() {
            open.close();
        }
    }

    /// A thread's own stream.
    @State(Scope.Thread)
    public static class Stream {
        private long handle;

        @Setup(Level.Trial)
        public void create(Memory shared) {
            handle = shared.open.newStream();
        }
    }

    /// The sizes of pairs.
    @State(Scope.Thread)
    public static class Pairs {
        @Param({"512", "4096", "65536", "1048576", "4194304"})
        private long byteSize;

        private DrawnSizes sizes = DrawnSizes.upperHalf(1);

        @Setup(Level.Trial)
        public void draw() {
            sizes = DrawnSizes.upperHalf(byteSize);
        }
    }

    /// The next live block to replace, and the size of its successor.
    @State(Scope.Thread)
    public static class Exchanges {
        private final DrawnSizes sizes = DrawnSizes.ofAllMagnitudes(MIXED_MAX_BYTES);
        private final SplittableRandom random = new SplittableRandom(1);
        private final ByteBuf[] buffers = new ByteBuf[LIVE_BLOCKS];
        private final long[] addresses = new long[LIVE_BLOCKS];
    }

    @Benchmark
    public boolean nettyPair(Buffers shared, Pairs pairs) {
        return shared.allocator.directBuffer(pairs.sizes.next()).release();
    }

    @Benchmark
    public long cisternPair(Memory shared, Stream stream, Pairs pairs) {
        long address = shared.memory.allocate(pairs.sizes.next(), 0, stream.handle);
        shared.memory.free(address, stream.handle);
        return address;
    }

    @Benchmark
    public ByteBuf nettyMixed(Buffers shared, Exchanges mixed) {
        int chosen = mixed.random.nextInt(LIVE_BLOCKS);
        if (mixed.buffers[chosen] != null) {
            mixed.buffers[chosen].release();
        }
        ByteBuf buffer = shared.allocator.directBuffer(mixed.sizes.next());
        mixed.buffers[chosen] = buffer;
        return buffer;
    }

    @Benchmark
    public long cisternMixed(Memory shared, Stream stream, Exchanges mixed) {
        int chosen = mixed.random.nextInt(LIVE_BLOCKS);
        shared.memory.free(mixed.addresses[chosen], stream.handle);
        long address = shared.memory.allocate(mixed.sizes.next(), 0, stream.handle);
        mixed.addresses[chosen] = address;
        return address;
    }
}
