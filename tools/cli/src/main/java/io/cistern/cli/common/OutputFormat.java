package io.cistern.cli.common;

import java.util.Locale;

/// The values of `--format`.
public enum OutputFormat {
    /// For people.
    TEXT,
    /// For programs: one JSON document.
    JSON,
    /// For programs: a line of JSON for each result, written at once.
    JSONL;

    /// The description of the option.
    public static final String WORDS =
            "text, json (one document) or jsonl (a line for each result, as soon as it is ready).";

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
