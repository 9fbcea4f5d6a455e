package io.cistern.peers;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;

/// Provides `pytorch-native`: a model of PyTorch's caching allocator as it is without settings, for replays.
public final class TorchNativeProvider implements AllocatorProvider {
    /// For the service loader.
    public TorchNativeProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "pytorch-native";
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
        return new TorchModel(context, false);
    }
}
