package io.cistern.caching;

import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.EventSink;
import io.cistern.spi.options.AllocatorOptions;
import java.util.Optional;

/// An environment of one device for an allocator whose options are read already, and which hears of its own events.
abstract class OneDeviceContext implements AllocatorContext, EventSink {
    abstract CudaDriver driver();

    @Override
    public AllocatorOptions options() {
        throw new AssertionError("options were read before");
    }

    @Override
    public DeviceEnvironment devices() {
        DeviceEnvironment environment =
                mock(DeviceEnvironment.class, withSettings().stubOnly());
        when(environment.deviceCount()).thenReturn(1);
        when(environment.totalBytes(0)).thenReturn(TestContext.TOTAL_BYTES);
        return environment;
    }

    @Override
    public EventSink events() {
        return this;
    }

    @Override
    public DeviceAllocator upstream(String spec) {
        throw new AssertionError("caching has no upstream");
    }

    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(driver()) ? Optional.of(type.cast(driver())) : Optional.empty();
    }
}
