package io.cistern;

import java.io.Serial;

/// A free of an address that is not the start of a live block: freed before, inside a block, or never allocated here.
public final class UnknownAddressException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long address;

    /// Names the address.
    ///
    /// @param address what was to be freed
    public UnknownAddressException(long address) {
        super("no live block begins at 0x" + Long.toHexString(address)
                + ": it was freed before, lies inside a block, or was not allocated through this DeviceMemory");
        this.address = address;
    }

    /// What was to be freed.
    public long address() {
        return address;
    }
}
