package io.cistern.spi.options;

import io.cistern.errors.ConfigurationException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Reads an [AllocatorSpec] from left to right, once.
///
/// ```
/// spec   = name [ ":" option { "," option } ]
/// option = key ( "=" | ":" ) ( list | text )          ":" is PyTorch's way
/// list   = "[" [ text { "," text } ] "]"
/// text   = quoted | bare
/// quoted = '"' { any character; \" and \\ for the two } '"'
/// bare   = one or more characters other than , [ ] " and blanks
/// name, key = one or more of letters, digits, "_", "-", "."
/// ```
///
/// Blanks may stand between any two of these parts. A bare text may hold `=` and `:`, so that a value can be a
/// spec itself (`caching:source=pages:location=host`); a value with a comma is quoted. Not thread-safe; used
/// once.
final class SpecParser {
    private static final char END = '\0';

    private final String text;
    private int position;

    SpecParser(String text) {
        this.text = text;
    }

    AllocatorSpec parse() {
        String name = word("a name");
        Map<String, List<String>> options = new LinkedHashMap<>();
        if (taken(':')) {
            do {
                option(options);
            } while (taken(','));
        }
        next();
        if (position < text.length()) {
            throw bad(options.isEmpty() ? "':' or the end is expected" : "',' or the end is expected");
        }
        return new AllocatorSpec(name, options, text);
    }

    private void option(Map<String, List<String>> options) {
        next();
        int start = position;
        String key = word("a key");
        if (!taken('=') && !taken(':')) {
            throw bad("'=' is expected after key '" + key + "'");
        }
        List<String> values = taken('[') ? list() : List.of(text());
        if (options.putIfAbsent(key, values) != null) {
            position = start;
            throw bad("key '" + key + "' is given twice");
        }
    }

    private List<String> list() {
        List<String> values = new ArrayList<>();
        if (taken(']')) {
            return List.of();
        }
        do {
            values.add(text());
        } while (taken(','));
        if (!taken(']')) {
            throw bad("',' or ']' is expected");
        }
        return List.copyOf(values);
    }

    private String text() {
        if (taken('"')) {
            return quoted();
        }
        int start = position;
        while (isBare(here())) {
            position++;
        }
        if (position == start) {
            throw bad("a value is expected");
        }
        return text.substring(start, position);
    }

    /// Reads up to the closing quote, after the opening one.
    private String quoted() {
        StringBuilder value = new StringBuilder();
        while (position < text.length()) {
            char c = text.charAt(position++);
            if (c == '"') {
                return value.toString();
            }
            value.append(c == '\\' ? escaped() : c);
        }
        throw bad("a closing '\"' is expected");
    }

    private char escaped() {
        char c = here();
        if (c != '"' && c != '\\') {
            throw bad("'\"' or '\\' is expected after '\\'");
        }
        position++;
        return c;
    }

    private String word(String what) {
        next();
        int start = position;
        while (isWord(here())) {
            position++;
        }
        if (position == start) {
            throw bad(what + " is expected");
        }
        return text.substring(start, position);
    }

    /// Skips blanks and takes the character if it comes next.
    private boolean taken(char wanted) {
        boolean found = next() == wanted;
        if (found) {
            position++;
            if (wanted != '"') {
                next();
            }
        }
        return found;
    }

    /// Skips blanks.
    private char next() {
        while (Character.isWhitespace(here())) {
            position++;
        }
        return here();
    }

    private char here() {
        return position < text.length() ? text.charAt(position) : END;
    }

    private static boolean isWord(char c) {
        return c < 128 && (Character.isLetterOrDigit(c) || c == '_' || c == '-' || c == '.');
    }

    private static boolean isBare(char c) {
        return c != END && c != ',' && c != '[' && c != ']' && c != '"' && !Character.isWhitespace(c);
    }

    private ConfigurationException bad(String what) {
        String where = position >= text.length() ? "at the end" : "at column " + (position + 1);
        return new ConfigurationException("spec '" + text + "': " + what + " " + where
                + "; a spec is NAME or NAME:key=value,key=[a,b],key=\"quoted\"");
    }
}
