package io.cistern.cli;

import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Writes JSON on one line: maps, iterables, strings, numbers, booleans, and null for what is not known.
final class Json {
    private final StringBuilder out = new StringBuilder();

    private Json() {}

    /// The text of one value.
    ///
    /// @throws IllegalArgumentException for a kind of value that JSON has not got
    static String write(@Nullable Object value) {
        Json json = new Json();
        json.value(value);
        return json.out.toString();
    }

    private void value(@Nullable Object value) {
        switch (value) {
            case null -> out.append("null");
            case Map<?, ?> map -> object(map);
            case Iterable<?> items -> array(items);
            case CharSequence text -> string(text);
            case Double number -> number(number);
            case Long number -> out.append(number);
            case Integer number -> out.append(number);
            case Boolean flag -> out.append(flag);
            default -> throw new IllegalArgumentException("no JSON for " + value.getClass());
        }
    }

    private void object(Map<?, ?> map) {
        out.append('{');
        for (Iterator<? extends Map.Entry<?, ?>> entries = map.entrySet().iterator(); entries.hasNext(); ) {
            Map.Entry<?, ?> entry = entries.next();
            string(String.valueOf(entry.getKey()));
            out.append(':');
            value(entry.getValue());
            out.append(entries.hasNext() ? "," : "");
        }
        out.append('}');
    }

    private void array(Iterable<?> items) {
        out.append('[');
        for (Iterator<?> rest = items.iterator(); rest.hasNext(); ) {
            value(rest.next());
            out.append(rest.hasNext() ? "," : "");
        }
        out.append(']');
    }

    /// JSON has neither infinities nor NaN. Three decimals do for milliseconds and ratios.
    private void number(double number) {
        if (Double.isFinite(number)) {
            out.append(String.format(Locale.ROOT, "%.3f", number));
        } else {
            out.append("null");
        }
    }

    private void string(CharSequence text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            character(text.charAt(i));
        }
        out.append('"');
    }

    /// Escapes what JSON must, and all surrogates, so that half of a pair can't make the line invalid UTF-8.
    private void character(char c) {
        switch (c) {
            case '"' -> out.append("\\\"");
            case '\\' -> out.append("\\\\");
            case '\n' -> out.append("\\n");
            case '\r' -> out.append("\\r");
            case '\t' -> out.append("\\t");
            default -> {
                if (c < 0x20 || c == 0x7f || Character.isSurrogate(c)) {
                    out.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
                } else {
                    out.append(c);
                }
            }
        }
    }
}
