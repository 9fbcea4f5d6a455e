package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDrivers;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
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

/// Measures the framework's overhead on each allocator with the driver in use: the public pair beside
/// the provider's own.
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class DriverPairBenchmark {
    @Param({"direct", "async", "caching"})
    private String allocator = "direct";

    @Param({"4096", "1048576"})
    private long byteSize;

    private CudaDriver driver;
    private DeviceMemory memory;
    private DeviceAllocator provider;
    private long stream;

    @Setup(Level.Trial)
    public void open() {
        driver = CudaDrivers.openBest();
        ProviderTap tap = new ProviderTap(allocator);
        List<AllocatorProvider> providers = new ArrayList<>(List.of(tap));
        ServiceLoader.load(AllocatorProvider.class).forEach(providers::add);
        List<SegmentSourceProvider> sources = new ArrayList<>();
        ServiceLoader.load(SegmentSourceProvider.class).forEach(sources::add);
        memory = DeviceMemory.builder(driver)
                .catalog(Catalog.of(providers, sources))
                .open();
        memory.open("tap");
        memory.setCurrent(allocator);
        provider = tap.tapped();
        stream = driver.streams().create(0);
    }

    @TearDown(Level.Trial)
    public void close() {
        driver.streams().synchronize(0, stream);
        memory.close();
        driver.streams().destroy(0, stream);
        driver.close();
    }

    /// The pair that a program calls.
    @Benchmark
    public long publicPair() {
        long address = memory.allocate(byteSize, 0, stream);
        memory.free(address, stream);
        return address;
    }

    /// The provider alone, called directly.
    @Benchmark
    public long providerPair() {
        long address = provider.allocate(byteSize, 0, stream);
        provider.free(address, byteSize, 0, stream);
        return address;
    }
}
