package io.cistern.spi;

import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;

/// Names and opens an allocator. [java.util.ServiceLoader] finds a provider that its JAR declares in
/// `META-INF/services/io.cistern.spi.AllocatorProvider`, or that its module declares with `provides`.
public interface AllocatorProvider {
    /// The version of this SPI. The constant is compiled into a plug-in, so the framework sees which version the
    /// plug-in was built for.
    int SPI_VERSION = 1;

    /// Returns [#SPI_VERSION].
    int spiVersion();

    /// Returns the name of the allocator in specs: lower-case letters, digits, `-` and `_`.
    String name();

    /// Returns the priority. If neither the program nor a setting chooses an allocator, the available one
    /// with the highest priority above 0 becomes current. An allocator with priority 0, the default, is
    /// opened only by name. A priority below 0 marks an allocator for a single purpose: commands of the
    /// program `cistern` that run with every allocator skip it.
    default int priority() {
        return 0;
    }

    /// Returns the options that [#open] reads, for documentation: `cistern options NAME` shows them.
    default List<? extends SpecOption<?>> options() {
        return List.of();
    }

    /// Returns whether the allocator can run here. The framework calls this often, so an implementation must
    /// not create a context, allocate memory or throw.
    default Availability availability(DeviceEnvironment environment) {
        return Availability.yes();
    }

    /// Returns the spec of another allocator that the options select, such as a backend. The framework then
    /// opens that allocator instead.
    ///
    /// @param options the options of the spec. If another allocator is opened, an option that this method has not
    ///     read is an error
    /// @return empty to open this provider's own allocator, which is the default
    /// @throws io.cistern.errors.ConfigurationException if an option has a value that the allocator doesn't
    ///     accept
    default Optional<AllocatorSpec> redirect(AllocatorOptions options) {
        return Optional.empty();
    }

    /// Opens an allocator. Each call opens a new one with memory of its own.
    ///
    /// @throws io.cistern.errors.ConfigurationException if an option has a value that the allocator doesn't
    ///     accept. Other exceptions reach the program unchanged, with a suppressed exception that names the
    ///     spec
    DeviceAllocator open(AllocatorContext context);

    /// Returns whether [#openForGraphs] is implemented. If it is not, the framework serves captured streams
    /// with ordinary blocks of the allocator that would serve them outside captures. The framework keeps
    /// these blocks until the graph is gone, and reuses them only for requests of the same size and stream.
    default boolean servesGraphs() {
        return false;
    }

    /// Opens a private allocator that serves streams while they are captured into graphs. The framework
    /// closes it once those graphs are gone and their last blocks are freed.
    ///
    /// @throws UnsupportedOperationException if [#servesGraphs] is false
    default GraphAllocator openForGraphs(AllocatorContext context) {
        throw new UnsupportedOperationException("allocator " + name() + " has no separate memory for graphs");
    }
}
