package io.cistern.spi;

import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Names and opens an allocator; found by [java.util.ServiceLoader], as
/// `META-INF/services/io.cistern.spi.AllocatorProvider` or a module's `provides`.
public interface AllocatorProvider {
    /// The version of this SPI. The constant is compiled into a plug-in, so that the framework sees what it was
    /// built for.
    int SPI_VERSION = 1;

    /// Returns [#SPI_VERSION].
    int spiVersion();

    /// Returns the name by which people ask for it: lower-case letters, digits, `-` and `_`.
    String name();

    /// Returns the priority. Where no allocator was chosen, the available one with the highest priority above 0 is
    /// current. One of 0, the default, is opened only by its name. One below 0 is for a single purpose, and
    /// commands that go through all allocators leave it out.
    default int priority() {
        return 0;
    }

    /// Returns the options that [#open] asks for. They are read by people alone: `cistern options NAME` shows them.
    default List<? extends SpecOption<?>> options() {
        return List.of();
    }

    /// Returns whether it can run here. Called often, so it creates no context, allocates nothing and does not
    /// throw.
    default Availability availability(DeviceEnvironment environment) {
        return Availability.yes();
    }

    /// Opens an allocator. Each call opens a new one with memory of its own.
    ///
    /// @throws io.cistern.errors.ConfigurationException for a value that it can't take. Other exceptions reach the
    ///     program unchanged, with a note of the spec among their suppressed exceptions
    DeviceAllocator open(AllocatorContext context);

    /// Returns whether [#openForGraphs] is implemented. If not, the framework serves captured streams from blocks of
    /// the usual allocator. It keeps those until the graph is gone, and reuses them only for requests of the
    /// same size and stream.
    default boolean servesGraphs() {
        return false;
    }

    /// Opens a private allocator for what streams allocate and free while they are captured into graphs. It lives
    /// as long as those graphs, and blocks of theirs.
    ///
    /// @throws UnsupportedOperationException unless [#servesGraphs]
    default GraphAllocator openForGraphs(AllocatorContext context) {
        throw new UnsupportedOperationException("allocator " + name() + " has no memory of its own for graphs");
    }
}
