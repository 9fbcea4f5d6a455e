package io.cistern.cli;

/// What `--format` says.
enum OutputFormat {
    /// For people.
    TEXT,
    /// For programs.
    JSON
}
