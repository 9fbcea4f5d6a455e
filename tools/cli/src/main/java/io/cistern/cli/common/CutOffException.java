package io.cistern.cli.common;

import java.io.EOFException;
import java.io.Serial;

/// Compressed data that ends too early.
final class CutOffException extends EOFException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// @param unpackedBytes what could be unpacked
    CutOffException(long unpackedBytes) {
        super("the file is cut off at byte " + unpackedBytes + " of the unpacked data");
    }
}
