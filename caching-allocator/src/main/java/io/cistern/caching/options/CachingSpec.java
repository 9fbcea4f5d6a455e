package io.cistern.caching.options;

import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecText;

/// Writes a spec of `caching` in code, with the types of the options:
///
/// ```java
/// memory.open(new CachingSpec().with(CachingOption.MAX_SPLIT_SIZE_MB, 128L).spec());
/// ```
///
/// Values are checked when an allocator is opened, as those of a spec in text are. Not thread-safe.
public final class CachingSpec {
    private final SpecText values = new SpecText();

    /// Starts with every option as it usually is.
    public CachingSpec() {}

    /// Gives an option a value, in place of an earlier one.
    public <T> CachingSpec with(CachingOption<T> option, T value) {
        values.put(option, value);
        return this;
    }

    /// The spec.
    public AllocatorSpec spec() {
        return values.of("caching");
    }
}
