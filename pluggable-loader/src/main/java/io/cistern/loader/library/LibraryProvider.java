package io.cistern.loader.library;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.options.AllocatorOptions;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Provides `library`: a C shared library as an allocator, with the functions that PyTorch's pluggable allocator
/// has.
///
/// `library:path=/x/alloc.so,malloc=my_malloc,free=my_free` and the hooks of [LibraryFunctions]. Further options:
///
/// | option | without it | meaning |
/// |---|---|---|
/// | `check` | `pointers` | `none` trusts what the library returns; on a simulated GPU nothing is checked |
/// | `critical` | `false` | `true`: its functions never wait (no `cudaMalloc` in them) and never call Java: a cheaper
/// call
/// |
/// | `fraction` | none | how much of each device the library may use; needs the hook `memory_fraction` |
/// | `preload` | none | libraries, by name or path, that this one needs and does not find by itself |
/// | `trial` | `true` | whether it is first loaded in another process, where it may crash; not with `preload` |
/// | `sha256` | any | the digest that the file must have; then exactly those bytes are loaded, from a private copy |
public final class LibraryProvider implements AllocatorProvider {
    static final String NAME = "library";

    /// For [java.util.ServiceLoader].
    public LibraryProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return NAME;
    }

    /// No, where shared libraries are not those of Linux.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return available();
    }

    static Availability available() {
        return System.getProperty("os.name", "").toLowerCase(Locale.ROOT).contains("linux")
                ? Availability.yes()
                : Availability.no("shared libraries are loaded on Linux alone");
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return opened(context);
    }

    static LibraryAllocator opened(AllocatorContext context) {
        CudaDriver driver = context.extension(CudaDriver.class)
                .orElseThrow(() -> new ConfigurationException("'library' needs the driver, which is hidden here"));
        AllocatorOptions options = context.options();
        boolean checks = options.choice("check", List.of("pointers", "none"))
                .orElse("pointers")
                .equals("pointers");
        Optional<Double> fraction = options.fraction("fraction");
        LibraryFunctions functions = LibraryFunctions.load(options);
        if (fraction.isPresent() && !functions.has(LibraryFunctions.MEMORY_FRACTION)) {
            throw new ConfigurationException("library " + functions.library()
                    + ": option fraction needs its function memory_fraction, which the spec does not name; setting"
                    + " cistern.limit and the allocator limit do without");
        }
        int deviceCount = context.devices().deviceCount();
        functions.initialise(deviceCount);
        PointerCheck check =
                checks && !driver.simulated() ? new PointerCheck(driver, "library " + functions.library()) : null;
        LibraryAllocator allocator = new LibraryAllocator(functions, driver, check);
        fraction.ifPresent(share -> allocator.setFraction(share, deviceCount));
        return allocator;
    }
}
