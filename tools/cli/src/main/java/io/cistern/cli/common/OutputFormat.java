package io.cistern.cli.common;

import java.util.Locale;

/// What `--format` says.
public enum OutputFormat {
    /// For people.
    TEXT,
    /// For programs: one JSON document.
    JSON,
    /// For programs: a line of JSON for each result, as soon as it is there.
    JSONL;

    /// For the description of an option.
    public static final String WORDS = "text, json (one document) or jsonl (a line for each result, once it is there).";

    /// As the command line names it.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
