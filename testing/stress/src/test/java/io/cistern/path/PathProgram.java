package io.cistern.path;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;

/// Allocates and frees on the simulated GPU, and prints for some calls what they pass through.
final class PathProgram {
    private static final long MIB = 1L << 20;

    private PathProgram() {}

    static void main() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(4L << 30).build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                        .open();
                CudaStream one = CudaStream.open(memory, 0);
                CudaStream other = CudaStream.open(memory, 0)) {
            memory.setCurrent("caching");
            long first = one.handle();
            long second = other.handle();
            for (int i = 0; i < 50; i++) {
                long small = memory.allocate(4096, 0, first);
                long large = memory.allocate(40 * MIB, 0, first);
                long elsewhere = memory.allocate(8 * MIB, 0, second);
                memory.free(small, first);
                memory.free(large, first);
                memory.free(elsewhere, second);
            }
            PathLog.begin();
            long hit = memory.allocate(4096, 0, first);
            print("hit", PathLog.end());
            PathLog.begin();
            memory.free(hit, first);
            print("free", PathLog.end());
            PathLog.begin();
            long grown = memory.allocate(200 * MIB, 0, first);
            print("miss", PathLog.end());
            memory.free(grown, first);
        }
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    private static void print(String call, Set<String> methods) {
        methods.forEach(method -> System.out.println(call + " " + method));
    }
}
