package io.cistern.async;

import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecText;

/// Builds a spec of `async` in code, with typed options:
///
/// ```java
/// memory.open(new AsyncSpec().with(AsyncOption.POOL, PoolChoice.DEFAULT).spec());
/// ```
///
/// Values are checked when the allocator is opened, as in a textual spec. Not thread-safe.
public final class AsyncSpec {
    private final SpecText values = new SpecText();

    /// Creates a spec with every option at its default.
    public AsyncSpec() {}

    /// Sets an option, replacing any earlier value.
    ///
    /// @return this
    public <T> AsyncSpec with(AsyncOption<T> option, T value) {
        values.put(option, value);
        return this;
    }

    /// Returns the spec of an allocator.
    public AllocatorSpec spec() {
        return values.of("async");
    }

    /// Returns the spec of a segment source with the same options, for the option `source` of `caching`.
    public AllocatorSpec sourceSpec() {
        return values.of(DriverPoolSourceProvider.NAME);
    }
}
