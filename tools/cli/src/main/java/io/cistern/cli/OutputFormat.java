package io.cistern.cli;

import java.util.Locale;

/// What `--format` says.
enum OutputFormat {
    /// For people.
    TEXT,
    /// For programs: one JSON document.
    JSON,
    /// For programs: a line of JSON for each result, as soon as it is there.
    JSONL;

    /// For the description of an option.
    static final String WORDS = "text, json (one document) or jsonl (a line for each result, once it is there).";

    /// As the command line names it.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
