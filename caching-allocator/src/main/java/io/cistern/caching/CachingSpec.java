package io.cistern.caching;

import io.cistern.AllocatorSpec;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Writes a spec of `caching` in code, with the types of the options:
///
/// ```java
/// memory.open(new CachingSpec().with(CachingOption.MAX_SPLIT_SIZE_MB, 128L).spec());
/// ```
///
/// Values are checked when an allocator is opened, as those of a spec in text are. Not thread-safe.
public final class CachingSpec {
    private final Map<String, List<String>> values = new LinkedHashMap<>();

    /// Starts with every option as it usually is.
    public CachingSpec() {}

    /// Gives an option a value, in place of an earlier one.
    public <T> CachingSpec with(CachingOption<T> option, T value) {
        values.put(option.key(), value instanceof PowerTwoDivisions list ? list.texts() : List.of(value.toString()));
        return this;
    }

    /// The spec.
    public AllocatorSpec spec() {
        StringBuilder text = new StringBuilder("caching");
        values.forEach((key, value) -> text.append(text.indexOf(":") < 0 ? ':' : ',')
                .append(key)
                .append('=')
                .append(
                        value.size() == 1
                                ? quoted(value.getFirst())
                                : value.toString().replace(" ", "")));
        return AllocatorSpec.parse(text.toString());
    }

    private static String quoted(String value) {
        return '"' + value.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
