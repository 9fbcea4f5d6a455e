package io.cistern.caching.internal.check;

import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.BlockHistory;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryMisuseException;
import io.cistern.errors.MemoryMisuseException.Fault;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.StreamUses;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.Optional;
import java.util.OptionalLong;

/// An allocator with the checks of level `checked`, around another one. At level `off` it does not exist.
///
/// A refused call changes nothing, except if the end of a stream was not announced: then that end is announced
/// now, and a free is carried out. A block's record is removed before its free, since the address may be
/// allocated again at once.
public final class CheckedAllocator extends AllocatorAdaptor implements MemoryReclaim, StreamUses {
    private final MemoryReclaim reclaim;
    private final StreamUses uses;
    private final CheckedBlocks blocks;
    private final StreamWatch streams;

    /// @param blocks receives the blocks
    public CheckedAllocator(DeviceAllocator allocator, CudaDriver driver, CheckedBlocks blocks) {
        super(allocator);
        this.reclaim = allocator.extension(MemoryReclaim.class).orElseGet(() -> new MemoryReclaim() {});
        this.uses = allocator.extension(StreamUses.class).orElseGet(() -> new StreamUses() {});
        this.blocks = blocks;
        this.streams = new StreamWatch(driver.streams());
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        requireAnnounced(device, stream, false, 0);
        try {
            return recorded(upstream().allocate(byteSize, device, stream), byteSize, device, stream);
        } catch (MemoryMisuseException found) {
            throw withBlock(found, blocks.freedOver(found.address()));
        }
    }

    @Override
    public long tryAllocate(long byteSize, int device, long stream) {
        long address = reclaim.tryAllocate(byteSize, device, stream);
        return address == 0 ? 0 : recorded(address, byteSize, device, stream);
    }

    /// Records a block. If the Java heap is too full for a record, the block is freed.
    private long recorded(long address, long byteSize, int device, long stream) {
        try {
            blocks.allocated(address, byteSize, device, stream);
        } catch (OutOfMemoryError full) {
            upstream().free(address, byteSize, device, stream);
            throw full;
        }
        return address;
    }

    /// Frees a block. The upstream checks a block that has no record here.
    @Override
    public void free(long address, long byteSize, int device, long stream) {
        Long key = null;
        try {
            key = address;
            endRecord(address, byteSize, device);
        } catch (OutOfMemoryError full) { // no caller repeats a free, so it frees even if it throws
            if (key != null) {
                blocks.forget(key);
            }
            upstream().free(address, byteSize, device, stream);
            throw full;
        }
        try {
            upstream().free(address, byteSize, device, stream);
        } catch (MemoryMisuseException found) {
            throw withBlock(found, blocks.find(address));
        }
        requireAnnounced(device, stream, true, address);
    }

    private void endRecord(long address, long byteSize, int device) {
        CheckedBlocks.Block block = blocks.live(address);
        if (block != null) {
            requireSame(block, byteSize, device);
        }
        if (block == null || !blocks.freeing(block)) {
            requireNoHistory(address);
        }
    }

    private void requireNoHistory(long address) {
        Optional<BlockHistory> history = blocks.find(address);
        if (history.isPresent()) {
            throw new UnknownAddressException(address, history.get());
        }
    }

    @Override
    public boolean recordUse(long address, int device, long stream) {
        if (blocks.live(address) == null) {
            requireNoHistory(address);
        }
        requireAnnounced(device, stream, false, address);
        return uses.recordUse(address, device, stream);
    }

    private static void requireSame(CheckedBlocks.Block block, long byteSize, int device) {
        if (block.device() != device) {
            throw new MemoryMisuseException(
                    Fault.WRONG_DEVICE, block.address(), "freed on device " + device, block.history());
        }
        if (block.byteSize() != byteSize) {
            throw new MemoryMisuseException(
                    Fault.WRONG_SIZE, block.address(), "freed with " + byteSize + " bytes", block.history());
        }
    }

    private void requireAnnounced(int device, long stream, boolean known, long address) {
        if (!streams.endedUnannounced(device, stream, known)) {
            return;
        }
        upstream().streamClosing(device, stream);
        String what = "stream 0x" + Long.toHexString(stream) + " of device " + device + " was destroyed, and"
                + " DeviceMemory.streamClosing did not announce it; its cached memory is discarded now";
        throw withBlock(new MemoryMisuseException(Fault.STREAM_END_NOT_ANNOUNCED, address, what), blocks.find(address));
    }

    private static MemoryMisuseException withBlock(MemoryMisuseException found, Optional<BlockHistory> block) {
        String what = String.valueOf(found.getMessage());
        return block.map(known -> new MemoryMisuseException(found.fault(), found.address(), what, known))
                .orElse(found);
    }

    @Override
    public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
        return reclaim.reclaim(step, refusal, stream);
    }

    @Override
    public void failed(DeviceOutOfMemoryException refusal) {
        reclaim.failed(refusal);
    }

    @Override
    public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
        return reclaim.trim(device, keepBytes, mode);
    }

    @Override
    public Availability canLend() {
        return reclaim.canLend();
    }

    @Override
    public void streamClosing(int device, long stream) {
        try {
            streams.announced(device, stream);
        } finally { // also if the Java heap is full
            super.streamClosing(device, stream);
        }
    }

    @Override
    public void close() {
        upstream().close();
    }
}
