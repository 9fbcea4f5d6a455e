package io.cistern.errors;

import io.cistern.cuda.CisternException;
import io.cistern.diagnostics.BlockHistory;
import java.io.Serial;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A free of an address that is not the start of a live block: freed before, inside a block, or never allocated
/// here.
public final class UnknownAddressException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long address;
    private final @Nullable BlockHistory block;

    /// Names the address.
    ///
    /// @param address what was to be freed
    public UnknownAddressException(long address) {
        super("no live block begins at 0x" + Long.toHexString(address)
                + ": it was freed before, lies inside a block, or was not allocated through this DeviceMemory");
        this.address = address;
        this.block = null;
    }

    /// Names the address and what is known of it.
    ///
    /// @param address what was to be freed
    /// @param block the block that was freed there before, or the live one that the address lies in
    public UnknownAddressException(long address, BlockHistory block) {
        super("no live block begins at 0x" + Long.toHexString(address) + ": "
                + (block.isAlive()
                        ? "it lies " + (address - block.address()) + " bytes inside "
                        : "it was freed before; ")
                + block.describe());
        this.address = address;
        this.block = block;
    }

    /// What was to be freed.
    public long address() {
        return address;
    }

    /// The block that was freed there before, or the live one that the address lies in; known where an allocator
    /// [remembers][io.cistern.spi.MemoryStatistics#history] its blocks.
    public Optional<BlockHistory> block() {
        return Optional.ofNullable(block);
    }
}
