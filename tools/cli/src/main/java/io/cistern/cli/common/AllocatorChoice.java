package io.cistern.cli.common;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.Streams;
import io.cistern.spi.Availability;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Chooses the allocators of a replay: those asked for, or all general ones that can run here.
public final class AllocatorChoice {
    private static final long PROBE_BYTES = 512;

    private final ReplayDevice gpu;
    private final Catalog catalog;
    private final Work work;

    public AllocatorChoice(ReplayDevice gpu, Catalog catalog, Work work) {
        this.gpu = gpu;
        this.catalog = catalog;
        this.work = work;
    }

    /// Opens each allocator once to see that it can run, and returns the specs.
    ///
    /// @param asked specs as given; empty for all that can run and have no priority below 0, the highest first
    /// @throws UsageException if one of those asked for can't run, or if none can
    public List<String> specs(List<String> asked) {
        Plugins.prepareFor(asked);
        if (asked.isEmpty()) {
            List<String> runnable = catalog.entries().stream()
                    .filter(entry -> entry.kind() == Catalog.Kind.ALLOCATOR
                            && entry.problem().isEmpty()
                            && entry.priority() >= 0)
                    .sorted(Comparator.comparingInt(Catalog.Entry::priority).reversed())
                    .map(Catalog.Entry::name)
                    .filter(name -> whyNot(name).isEmpty())
                    .toList();
            if (runnable.isEmpty()) {
                throw new UsageException("no allocator can run here; `cistern doctor` says why");
            }
            return runnable;
        }
        for (String spec : asked) {
            whyNot(spec).ifPresent(reason -> {
                throw new UsageException("--allocator " + spec + ": " + reason);
            });
        }
        return asked;
    }

    /// Returns a line for people that names the unusable allocators that a default choice leaves out, so that
    /// nobody misses them in silence.
    ///
    /// @param asked specs as given; the answer is empty if there are any
    public static Optional<String> leftOut(Catalog catalog, List<String> asked) {
        List<String> names = catalog.entries().stream()
                .filter(entry -> entry.kind() == Catalog.Kind.ALLOCATOR
                        && entry.problem().isPresent())
                .map(Catalog.Entry::name)
                .distinct()
                .toList();
        return asked.isEmpty() && !names.isEmpty()
                ? Optional.of("left out, since they can't be used: " + String.join(", ", names)
                        + "; `cistern doctor` says why")
                : Optional.empty();
    }

    /// Returns why work can't write to or read from blocks: a simulated GPU knows only memory of
    /// its own driver.
    private Optional<String> notOfTheDevice(DeviceMemory memory, Allocator allocator) {
        if (!memory.driver().simulated()) {
            return Optional.empty();
        }
        long address = allocator.allocate(PROBE_BYTES, gpu.ordinal(), Streams.LEGACY_DEFAULT);
        try {
            memory.driver().memory().attribute(gpu.ordinal(), PointerAttribute.MEMORY_TYPE, address);
            return Optional.empty();
        } catch (CudaException unknown) {
            return Optional.of("--work " + work.name().toLowerCase(Locale.ROOT)
                    + " needs device memory, but the simulated GPU does not know the memory that this allocator hands"
                    + " out; use --work none");
        } finally {
            memory.free(address, Streams.LEGACY_DEFAULT);
        }
    }

    private Optional<String> whyNot(String spec) {
        CudaDriver driver = gpu.driver();
        try (DeviceMemory memory = gpu.open(driver, catalog)) {
            String name = catalog.complete(AllocatorSpec.parse(spec)).name();
            Availability availability = catalog.allocator(name).availability(memory.environment());
            if (!availability.available()) {
                return Optional.of(availability.reason());
            }
            Allocator allocator = memory.open(spec);
            Optional<String> why = work == Work.NONE ? Optional.empty() : notOfTheDevice(memory, allocator);
            allocator.close();
            return why;
        } catch (CisternException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        } finally {
            gpu.release(driver);
        }
    }
}
