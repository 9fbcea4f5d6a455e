package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDrivers;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.ServiceLoader;

/// Opens device memory on the GPU, or on a simulated one if there is none, with an allocator of the class path as the
/// current one.
final class OpenMemory implements AutoCloseable {
    private final CudaDriver driver = CudaDrivers.openBest();
    private final DeviceMemory memory = DeviceMemory.builder(driver)
            .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
            .open();

    /// @param spec the current allocator
    OpenMemory(String spec) {
        memory.setCurrent(spec);
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    DeviceMemory memory() {
        return memory;
    }

    CudaDriver driver() {
        return driver;
    }

    long newStream() {
        return driver.streams().create(0);
    }

    /// Waits for the device and closes memory and driver, which also ends the streams.
    @Override
    public void close() {
        driver.devices().synchronize(0);
        memory.close();
        driver.close();
    }
}
