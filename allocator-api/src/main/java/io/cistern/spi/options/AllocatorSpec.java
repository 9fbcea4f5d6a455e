package io.cistern.spi.options;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// The name of an allocator or a segment source with options, written as `NAME` or
/// `NAME:key=value,key=[a,b],key="quoted"`.
///
/// The grammar is the same in system properties, in environment variables and on the command line.
/// PyTorch's `key:value` is accepted, too.
///
/// @param name the provider's name
/// @param options the options in the order given; each value is a list, which has one element unless the
///     value is written in brackets
/// @param text the spec as it was given
public record AllocatorSpec(String name, Map<String, List<String>> options, String text) {
    /// Copies the options.
    public AllocatorSpec {
        options = java.util.Collections.unmodifiableMap(new LinkedHashMap<>(options));
    }

    /// Parses a spec.
    ///
    /// @throws io.cistern.errors.ConfigurationException if `text` does not follow the grammar; the message
    ///     says where
    public static AllocatorSpec parse(String text) {
        return new SpecParser(Objects.requireNonNull(text, "spec")).parse();
    }

    /// Returns the spec as it was given.
    @Override
    public String toString() {
        return text;
    }
}
