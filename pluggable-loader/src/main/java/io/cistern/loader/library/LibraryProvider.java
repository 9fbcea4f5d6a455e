package io.cistern.loader.library;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Provides `library`: a C shared library as an allocator, with the functions of PyTorch's pluggable allocator.
///
/// A spec is `library:path=/x/alloc.so,malloc=my_malloc,free=my_free`, with the hooks of [LibraryFunctions] and
/// the options of [LibraryOptions].
public final class LibraryProvider implements AllocatorProvider {
    static final String NAME = "library";

    /// Creates the provider, for [java.util.ServiceLoader].
    public LibraryProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<SpecOption<?>> options() {
        return LibraryOptions.all();
    }

    /// Returns no on systems other than Linux, whose shared libraries differ.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return available();
    }

    static Availability available() {
        return System.getProperty("os.name", "").toLowerCase(Locale.ROOT).contains("linux")
                ? Availability.yes()
                : Availability.no("shared libraries can be loaded only on Linux");
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return opened(context);
    }

    static LibraryAllocator opened(AllocatorContext context) {
        CudaDriver driver = context.extension(CudaDriver.class)
                .orElseThrow(() -> new ConfigurationException("'library' needs the driver, which is hidden here"));
        AllocatorOptions options = context.options();
        boolean checks = LibraryOptions.CHECK.read(options).orElse("pointers").equals("pointers");
        Optional<Double> fraction = LibraryOptions.FRACTION.read(options);
        LibraryFunctions functions = LibraryFunctions.load(options);
        if (fraction.isPresent() && !functions.has(LibraryFunctions.MEMORY_FRACTION)) {
            throw new ConfigurationException("library " + functions.library()
                    + ": option fraction needs its function memory_fraction, which the spec does not name; setting"
                    + " cistern.limit and the allocator limit need no such function");
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
