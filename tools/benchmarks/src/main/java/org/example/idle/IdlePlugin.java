package org.example.idle;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;

/// The plug-in in each of `StartUp`'s JARs: it is found and asked, but never opened. Its package is not Cistern's, so
/// that each plug-in's loader has its own class; its name is that of its JAR.
public final class IdlePlugin implements AllocatorProvider {
    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        String loader = IdlePlugin.class.getClassLoader().getName();
        return loader.substring(loader.lastIndexOf(' ') + 1, loader.lastIndexOf('.'));
    }

    /// Returns a priority below those of Cistern's own allocators.
    @Override
    public int priority() {
        return -1000;
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        throw new UnsupportedOperationException("idle");
    }
}
