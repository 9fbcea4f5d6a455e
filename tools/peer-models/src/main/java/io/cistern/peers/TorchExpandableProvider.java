package io.cistern.peers;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;

/// Provides `pytorch-expandable`: a model of PyTorch's caching allocator with `expandable_segments:True`, for replays.
public final class TorchExpandableProvider implements AllocatorProvider {
    /// For the service loader.
    public TorchExpandableProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "pytorch-expandable";
    }

    /// Nobody chooses it but by name.
    @Override
    public int priority() {
        return -1;
    }

    @Override
    public Availability availability(DeviceEnvironment environment) {
        return TorchModel.availability(environment);
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return new TorchModel(context, true);
    }
}
