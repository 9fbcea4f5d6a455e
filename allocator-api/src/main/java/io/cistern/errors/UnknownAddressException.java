package io.cistern.errors;

import io.cistern.cuda.CisternException;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.BlockHistory;
import java.io.Serial;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Thrown if no live block begins at an address: the block there was freed before, the address lies inside
/// a block, or the device memory never allocated a block there.
public final class UnknownAddressException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long address;
    private final @Nullable BlockHistory block;

    /// Creates an exception.
    ///
    /// @param address the address that was given
    public UnknownAddressException(long address) {
        super("no live block begins at 0x" + Long.toHexString(address)
                + ": it was freed before, lies inside a block, or was not allocated through this DeviceMemory");
        this.address = address;
        this.block = null;
    }

    /// Creates an exception that also describes the block that was freed at the address, or inside which
    /// the address lies.
    ///
    /// @param address the address that was given
    /// @param block the freed block that began at the address, or the live block inside which the address
    ///     lies
    public UnknownAddressException(long address, BlockHistory block) {
        super("no live block begins at 0x" + Long.toHexString(address) + ": "
                + (block.isAlive()
                        ? "it lies " + ByteSizes.count(address - block.address()) + " inside "
                        : "it was freed before; ")
                + block.describe());
        this.address = address;
        this.block = block;
    }

    /// Returns the address that was given.
    public long address() {
        return address;
    }

    /// Returns the freed block that began at the address, or the live block inside which the address lies.
    /// Empty unless an allocator [remembers][io.cistern.spi.MemoryStatistics#history] that block, as
    /// `caching:check=checked` does.
    public Optional<BlockHistory> block() {
        return Optional.ofNullable(block);
    }
}
