package io.cistern.cli.replay;

import java.util.Locale;

/// What `--layer` says: what a program holds of a block.
public enum Layer {
    /// Its address.
    RAW,
    /// A [io.cistern.buffers.DeviceBuffer].
    BUFFER;

    /// As the command line names it.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
