package io.cistern.nccl;

import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.internal.segment.SegmentRegistry;
import io.cistern.nccl.internal.symmetric.SymmetricAllocator;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.RangeSource;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;

/// Provides the allocator `symmetric`. Small and medium blocks lie at deterministic offsets of one
/// segment per device, which can be registered as a [window][Communicator#registerWindow]; large blocks
/// come from plain memory. The reason is speed: collectives on small and medium buffers are faster in a
/// window, those on large buffers in plain memory.
public final class SymmetricProvider implements AllocatorProvider {
    /// The size up to which an all-reduce between two H200 without multicast was faster in a window than in
    /// plain memory. Windows win while latency dominates, plain memory once bandwidth does. The sizes tried were
    /// powers of two: docs/nccl.md.
    static final long CROSSOVER_BYTES = 32L << 20;

    private static final long USUAL_BYTES = 512L << 20;
    private static final long MIN_BYTES = 2L << 20;

    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<Long> BYTES = SpecOption.of(
                "symmetric",
                "bytes",
                "bytes from 2MiB",
                "512MiB",
                "the size of each device's segment",
                SymmetricProvider::segmentBytes);
        static final SpecOption<Long> LARGEST = SpecOption.of(
                "symmetric", "largest", "bytes", "32MiB", "the largest block in the segment", AllocatorOptions::bytes);
        static final SpecOption<String> SOURCE = SpecOption.of(
                "symmetric",
                "source",
                "the spec of a source of ranges",
                "`nccl`",
                "where the segment comes from",
                AllocatorOptions::text);
        static final SpecOption<String> UPSTREAM = SpecOption.of(
                "symmetric",
                "upstream",
                "a spec",
                "`caching:source=nccl`",
                "the allocator of larger blocks, and of those that do not fit",
                AllocatorOptions::text);
    }

    /// Creates the provider, for [java.util.ServiceLoader].
    public SymmetricProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "symmetric";
    }

    @Override
    public List<SpecOption<?>> options() {
        return List.of(Options.BYTES, Options.LARGEST, Options.SOURCE, Options.UPSTREAM);
    }

    /// Returns a negative priority: this allocator is only for windows.
    @Override
    public int priority() {
        return -1;
    }

    /// Returns the availability of the source `nccl`.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return NcclApis.availability(environment.simulated());
    }

    private static Optional<Long> segmentBytes(AllocatorOptions options, String key) {
        Optional<Long> bytes = options.bytes(key);
        if (bytes.orElse(MIN_BYTES) < MIN_BYTES) {
            throw new ConfigurationException("symmetric: bytes must be at least 2MiB, not " + bytes.get());
        }
        return bytes;
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        AllocatorOptions options = context.options();
        long bytes = Options.BYTES.read(options).orElse(USUAL_BYTES);
        long largest = Options.LARGEST.read(options).orElse(CROSSOVER_BYTES);
        DeviceAllocator upstream =
                context.upstream(Options.UPSTREAM.read(options).orElse("caching:source=nccl"));
        String source = Options.SOURCE.read(options).orElse("nccl");
        SegmentSource segments = context.segments(source);
        if (!(segments instanceof RangeSource ranges)) {
            throw new ConfigurationException("symmetric: source=" + source + " gives no ranges; valid: nccl");
        }
        if (ranges.extension(SegmentRegistry.Owner.class).isEmpty()) {
            throw new ConfigurationException(
                    "symmetric: source=" + source + " gives memory that NCCL can't share; valid: nccl");
        }
        return new SymmetricAllocator(context, ranges, upstream, bytes, largest);
    }
}
