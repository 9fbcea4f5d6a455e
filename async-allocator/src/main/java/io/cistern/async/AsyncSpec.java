package io.cistern.async;

import io.cistern.AllocatorSpec;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Writes a spec of `async` in code, with the types of the options:
///
/// ```java
/// memory.open(new AsyncSpec().with(AsyncOption.POOL, PoolChoice.DEFAULT).spec());
/// ```
///
/// Values are checked when an allocator is opened, as those of a spec in text are. Not thread-safe.
public final class AsyncSpec {
    private final Map<String, List<String>> values = new LinkedHashMap<>();

    /// Starts with every option as it usually is.
    public AsyncSpec() {}

    /// Gives an option a value, in place of an earlier one.
    public <T> AsyncSpec with(AsyncOption<T> option, T value) {
        values.put(option.key(), option.write(value));
        return this;
    }

    /// The spec of an allocator.
    public AllocatorSpec spec() {
        return AllocatorSpec.parse(text("async"));
    }

    /// The spec of a segment source of the same options, for the option `source` of `caching`.
    public AllocatorSpec sourceSpec() {
        return AllocatorSpec.parse(text(DriverPoolSourceProvider.NAME));
    }

    private String text(String name) {
        StringBuilder text = new StringBuilder(name);
        values.forEach((key, value) -> text.append(text.indexOf(":") < 0 ? ':' : ',')
                .append(key)
                .append('=')
                .append(value.size() == 1 ? value.getFirst() : '[' + String.join(",", value) + ']'));
        return text.toString();
    }
}
