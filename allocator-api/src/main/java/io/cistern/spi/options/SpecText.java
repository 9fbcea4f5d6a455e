package io.cistern.spi.options;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/// Collects values of options, and writes them as a spec in the order in which they were put. Not
/// thread-safe.
public final class SpecText {
    /// Values that the grammar accepts anywhere without quotes.
    private static final Pattern PLAIN = Pattern.compile("[-+.:\\w]+");

    private final Map<String, List<String>> values = new LinkedHashMap<>();

    /// Creates a collection without values.
    public SpecText() {}

    /// Sets the value of an option, replacing any earlier one.
    public <T> void put(SpecOption<T> option, T value) {
        values.put(option.key(), option.write(value));
    }

    /// Returns the spec of an allocator or a source with these values, which are checked only when the
    /// allocator or the source is opened.
    public AllocatorSpec of(String name) {
        StringBuilder text = new StringBuilder(name);
        values.forEach((key, value) -> text.append(text.indexOf(":") < 0 ? ':' : ',')
                .append(key)
                .append('=')
                .append(value.size() == 1 ? quoted(value.getFirst()) : '[' + String.join(",", value) + ']'));
        return AllocatorSpec.parse(text.toString());
    }

    private static String quoted(String value) {
        return PLAIN.matcher(value).matches()
                ? value
                : '"' + value.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
