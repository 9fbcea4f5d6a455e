package io.cistern.spi.options;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/// Values of options in the order in which they were given, to be written as a spec. Not thread-safe.
public final class SpecText {
    /// What the grammar takes without quotes anywhere.
    private static final Pattern PLAIN = Pattern.compile("[-+.:\\w]+");

    private final Map<String, List<String>> values = new LinkedHashMap<>();

    /// Starts without any.
    public SpecText() {}

    /// Gives an option a value, in place of an earlier one.
    public <T> void put(SpecOption<T> option, T value) {
        values.put(option.key(), option.write(value));
    }

    /// The spec of an allocator or a source with these values. They are checked when it is opened.
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
