package io.cistern.adaptors;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.Streams;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.AllocatorConformance;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/// A confined allocator whose owner is one thread that works for all others does what every allocator does.
class ConfinedConformanceTests extends AllocatorConformance {
    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("served");
    }

    @Override
    protected Catalog catalog() {
        List<AllocatorProvider> allocators = new ArrayList<>(List.of(new ServedProvider()));
        ServiceLoader.load(AllocatorProvider.class).forEach(allocators::add);
        List<SegmentSourceProvider> sources = new ArrayList<>();
        ServiceLoader.load(SegmentSourceProvider.class).forEach(sources::add);
        return Catalog.of(allocators, sources);
    }

    private static final class ServedProvider implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "served";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new Served(context);
        }
    }

    /// Has every call that only the owner may make be made by the owner.
    private static final class Served implements DeviceAllocator {
        private final ExecutorService owner = Executors.newSingleThreadExecutor();
        private final DeviceAllocator confined;
        private final StreamOrder order;

        Served(AllocatorContext context) {
            order = context.streams();
            confined = call(() -> context.upstream("confined:upstream=caching"));
        }

        private <T> T call(Supplier<T> task) {
            try {
                return CompletableFuture.supplyAsync(task, owner).join();
            } catch (CompletionException e) {
                throw e.getCause() instanceof RuntimeException failure ? failure : e;
            }
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (stream != Streams.PER_THREAD_DEFAULT) {
                return call(() -> confined.allocate(byteSize, device, stream));
            }
            Allocated allocated = call(
                    () -> new Allocated(confined.allocate(byteSize, device, stream), order.record(device, stream)));
            order.await(device, stream, allocated.fence());
            order.release(device, allocated.fence());
            return allocated.address();
        }

        /// @param fence marks the allocation on the owner's own stream
        private record Allocated(long address, long fence) {}

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            confined.free(address, byteSize, device, stream);
        }

        @Override
        public OptionalLong reservedBytes(int device) {
            return confined.reservedBytes(device);
        }

        @Override
        public long trim(int device, long keepBytes) {
            return call(() -> confined.trim(device, keepBytes));
        }

        @Override
        public void streamClosing(int device, long stream) {
            call(() -> {
                confined.streamClosing(device, stream);
                return true;
            });
        }

        @Override
        public void close() {
            owner.close();
        }
    }
}
