package io.cistern.spi;

/// Names and opens an allocator; found by [java.util.ServiceLoader], as
/// `META-INF/services/io.cistern.spi.AllocatorProvider` or a module's `provides`.
public interface AllocatorProvider {
    /// The version of this SPI. The constant is compiled into a plug-in, so that the framework sees what it was
    /// built for.
    int SPI_VERSION = 1;

    /// Returns [#SPI_VERSION].
    int spiVersion();

    /// The name by which people ask for it: lower-case letters, digits, `-` and `_`.
    String name();

    /// Who is current when nobody chose: the highest that is available. 0, the default, is by name only. Below 0 is
    /// for
    /// one purpose, and commands that go through all allocators leave it out.
    default int priority() {
        return 0;
    }

    /// Whether it can run here. Cheap: creates no context, allocates nothing, does not throw.
    default Availability availability(DeviceEnvironment environment) {
        return Availability.yes();
    }

    /// Opens an allocator; each call a new one with memory of its own.
    ///
    /// @throws io.cistern.errors.ConfigurationException for an option it does not know or a value it can't take.
    ///     Anything else reaches a program that asked for the allocator as it is, with a note of the spec among its
    ///     suppressed exceptions
    DeviceAllocator open(AllocatorContext context);

    /// Whether [#openForGraphs] is there. Without it the framework serves captured streams from blocks of the
    /// usual allocator that it keeps until the graph is gone, and reuses only for requests of the same size and
    /// stream.
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
