package io.cistern.cli.replay;

import java.util.Locale;

/// The values of `--layer`: the form in which a program holds a block.
public enum Layer {
    /// Its address.
    RAW,
    /// A [io.cistern.buffers.DeviceBuffer].
    BUFFER;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
