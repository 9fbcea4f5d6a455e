package io.cistern.caching.options;

import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecText;

/// Builds a spec of `caching` in code, with typed options:
///
/// ```java
/// memory.open(new CachingSpec().with(CachingOption.MAX_BYTES, 8L << 30).spec());
/// ```
///
/// Values are checked when an allocator is opened, like those of a spec in text. Not thread-safe.
public final class CachingSpec {
    private final SpecText values = new SpecText();

    /// Creates a spec with every option at its default.
    public CachingSpec() {}

    /// Sets an option, replacing any earlier value.
    ///
    /// @param <T> the type of the option's value
    /// @return this builder
    public <T> CachingSpec with(CachingOption<T> option, T value) {
        values.put(option, value);
        return this;
    }

    /// Returns the spec with the options set so far.
    public AllocatorSpec spec() {
        return values.of("caching");
    }
}
