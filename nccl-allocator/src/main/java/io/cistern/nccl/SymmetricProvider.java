package io.cistern.nccl;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.RangeSource;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.options.AllocatorOptions;

/// Provides the allocator `symmetric`: small and middle blocks at deterministic offsets of one segment a device,
/// which can be registered as a [window][Communicator#registerWindow]; large ones from plain memory. So buffers
/// lie where the collective on them is fastest, and a program leaves the choice to their size.
///
/// | option | values | meaning |
/// |---|---|---|
/// | `bytes` | from `2MiB`; `512MiB` | the segment of each device; what finds no room there comes from `upstream` |
/// | `largest` | `32MiB` | larger blocks come from `upstream`, where collectives need no window to be fast |
/// | `source` | a source of ranges; `nccl` | where the segment comes from |
/// | `upstream` | an allocator; `caching:source=nccl` | where larger blocks come from |
public final class SymmetricProvider implements AllocatorProvider {
    /// Between two H200 without multicast, an all-reduce of up to 32 MiB was faster in a window, a larger one in
    /// plain memory: windows win while latency counts, plain memory once bandwidth does. By powers of two:
    /// docs/nccl.md.
    static final long CROSSOVER_BYTES = 32L << 20;

    private static final long USUAL_BYTES = 512L << 20;
    private static final long MIN_BYTES = 2L << 20;

    /// For [java.util.ServiceLoader].
    public SymmetricProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "symmetric";
    }

    /// For windows alone.
    @Override
    public int priority() {
        return -1;
    }

    /// As the source `nccl`.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return NcclApis.availability(environment.simulated());
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        AllocatorOptions options = context.options();
        long bytes = options.bytes("bytes").orElse(USUAL_BYTES);
        if (bytes < MIN_BYTES) {
            throw new ConfigurationException("symmetric: bytes is at least 2MiB, not " + bytes);
        }
        long largest = options.bytes("largest").orElse(CROSSOVER_BYTES);
        DeviceAllocator upstream = context.upstream(options.text("upstream").orElse("caching:source=nccl"));
        String source = options.text("source").orElse("nccl");
        SegmentSource segments = context.segments(source);
        if (!(segments instanceof RangeSource ranges)) {
            throw new ConfigurationException("symmetric: source=" + source + " gives no ranges; legal: nccl");
        }
        return new SymmetricAllocator(context, ranges, upstream, bytes, largest);
    }
}
