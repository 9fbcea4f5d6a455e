package io.cistern.loader;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorSpec;

/// An allocator whose name stands for a spec: by setting `cistern.define.NAME`, or since its library lies in the
/// plug-in directory.
///
/// @param name the name
/// @param spec what it stands for
record DefinedAllocator(String name, AllocatorSpec spec) implements AllocatorProvider {
    /// Names that the thread is opening, so that one that stands for itself is told and not followed for ever.
    private static final ThreadLocal<String> OPENING = ThreadLocal.withInitial(() -> "");

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    /// @throws ConfigurationException if the spec can't be followed, or comes back to this name
    @Override
    public DeviceAllocator open(AllocatorContext context) {
        String opening = OPENING.get();
        String mine = " " + name + " ";
        if (opening.contains(mine)) {
            throw new ConfigurationException("'" + name + "' stands for itself: " + spec);
        }
        OPENING.set(opening + mine);
        try {
            return new AllocatorAdaptor(context.upstream(spec.text())) {}; // the framework closes the upstream
        } finally {
            OPENING.set(opening);
        }
    }
}
