package io.cistern.cli;

/// What `--layer` says: what a program holds of a block.
enum Layer {
    /// Its address.
    RAW,
    /// A [io.cistern.DeviceBuffer].
    BUFFER
}
