package io.cistern.cli;

import io.cistern.AllocatorSpec;
import io.cistern.CisternException;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.spi.Availability;
import io.cistern.spi.Catalog;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/// Which allocators a replay goes through: those asked for, or all that can run.
final class AllocatorChoice {
    private final ReplayDevice gpu;
    private final Catalog catalog;

    AllocatorChoice(ReplayDevice gpu, Catalog catalog) {
        this.gpu = gpu;
        this.catalog = catalog;
    }

    /// The specs, each of which was opened once to see that it can be.
    ///
    /// @param asked specs as given; empty for all that can run, the highest priority first
    /// @throws UsageException for one that can't run, or if there is none
    List<String> specs(List<String> asked) {
        if (asked.isEmpty()) {
            List<String> runnable = catalog.entries().stream()
                    .filter(entry -> entry.kind() == Catalog.Kind.ALLOCATOR
                            && entry.problem().isEmpty())
                    .sorted(Comparator.comparingInt(Catalog.Entry::priority).reversed())
                    .map(Catalog.Entry::name)
                    .filter(name -> whyNot(name).isEmpty())
                    .toList();
            if (runnable.isEmpty()) {
                throw new UsageException("no allocator can run here; `cistern doctor` tells why");
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

    private Optional<String> whyNot(String spec) {
        CudaDriver driver = gpu.driver();
        try (DeviceMemory memory = gpu.open(driver, catalog)) {
            String name = catalog.complete(AllocatorSpec.parse(spec)).name();
            Availability availability = catalog.allocator(name).availability(memory.environment());
            if (!availability.available()) {
                return Optional.of(availability.reason());
            }
            memory.open(spec).close();
            return Optional.empty();
        } catch (CisternException | CudaException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        } finally {
            gpu.release(driver);
        }
    }
}
