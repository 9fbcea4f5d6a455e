package io.cistern.async;

import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecText;

/// Writes a spec of `async` in code, with the types of the options:
///
/// ```java
/// memory.open(new AsyncSpec().with(AsyncOption.POOL, PoolChoice.DEFAULT).spec());
/// ```
///
/// Values are checked when an allocator is opened, as those of a spec in text are. Not thread-safe.
public final class AsyncSpec {
    private final SpecText values = new SpecText();

    /// Starts with every option as it usually is.
    public AsyncSpec() {}

    /// Gives an option a value, in place of an earlier one.
    public <T> AsyncSpec with(AsyncOption<T> option, T value) {
        values.put(option, value);
        return this;
    }

    /// The spec of an allocator.
    public AllocatorSpec spec() {
        return values.of("async");
    }

    /// The spec of a segment source of the same options, for the option `source` of `caching`.
    public AllocatorSpec sourceSpec() {
        return values.of(DriverPoolSourceProvider.NAME);
    }
}
