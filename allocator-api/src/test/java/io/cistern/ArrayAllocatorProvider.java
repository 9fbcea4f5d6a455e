package io.cistern;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A plug-in over the source `linear` that writes down what is done to it.
final class ArrayAllocatorProvider implements AllocatorProvider {
    final List<String> log = Collections.synchronizedList(new ArrayList<>());
    private final String name;

    /// What opening throws, or null.
    @Nullable
    RuntimeException failure;

    /// What allocations throw, or null.
    @Nullable
    RuntimeException failureOfAllocate;

    /// What happens in the meantime.
    Runnable whileOpening = () -> {};

    /// What closing does first.
    Runnable whileClosing = () -> {};

    /// What the next allocation does first.
    Runnable inAllocate = () -> {};

    ArrayAllocatorProvider(String name) {
        this.name = name;
    }

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        throwIfSet(failure);
        RangeSource source = context.ranges("linear");
        context.options().flag("loud");
        log.add(name + " opened");
        whileOpening.run();
        return new DeviceAllocator() {
            private final Map<Long, Segment> live = Collections.synchronizedMap(new HashMap<>());

            @Override
            public long allocate(long byteSize, int device, long stream) {
                throwIfSet(failureOfAllocate);
                Runnable now = inAllocate;
                inAllocate = () -> {};
                now.run();
                Segment segment = source.acquire(byteSize, 256, device);
                live.put(segment.address(), segment);
                return segment.address();
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                source.release(live.remove(address));
            }

            @Override
            public void streamClosing(int device, long stream) {
                log.add(name + " told of stream " + stream + " on device " + device);
            }

            @Override
            public void close() {
                whileClosing.run();
                log.add(name + " closed");
            }
        };
    }

    private static void throwIfSet(@Nullable RuntimeException failure) {
        if (failure != null) {
            throw failure;
        }
    }
}
