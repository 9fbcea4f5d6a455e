package io.cistern.caching;

import io.cistern.diagnostics.BlockHistory;
import io.cistern.errors.MemoryMisuseException;
import io.cistern.errors.MemoryMisuseException.Fault;
import io.cistern.errors.UnknownAddressException;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.BlockRecords;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.Lends;
import io.cistern.spi.RecordsUse;
import java.util.Optional;

/// The checks of level `checked`, around an allocator: there is nothing of it where the level is `off`.
///
/// A call that is refused changes nothing, but for a stream whose end was not announced: that end is made up for,
/// and a free is carried out. The record of a block goes before its free, since the address may come back at once.
final class CheckedAllocator extends AllocatorAdaptor implements BlockRecords, Lends, RecordsUse {
    private final DeviceAllocator allocator;
    private final CheckedBlocks blocks = new CheckedBlocks();
    private final StreamWatch streams;

    CheckedAllocator(DeviceAllocator allocator, CudaDriver driver) {
        super(allocator);
        this.allocator = allocator;
        this.streams = new StreamWatch(driver.streams());
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        requireAnnounced(device, stream, false, 0);
        try {
            long address = allocator.allocate(byteSize, device, stream);
            blocks.allocated(address, byteSize, device, stream);
            return address;
        } catch (MemoryMisuseException found) {
            throw withBlock(found, blocks.freedOver(found.address()));
        }
    }

    @Override
    public long tryAllocate(long byteSize, int device, long stream) {
        long address = allocator
                .extension(Lends.class)
                .map(lends -> lends.tryAllocate(byteSize, device, stream))
                .orElse(0L);
        if (address != 0) {
            blocks.allocated(address, byteSize, device, stream);
        }
        return address;
    }

    /// A block without a record came by a way that this layer does not see; the allocator looks at it itself.
    @Override
    public void free(long address, long byteSize, int device, long stream) {
        CheckedBlocks.Block block = blocks.live(address);
        if (block != null) {
            requireSame(block, byteSize, device);
        }
        if (block == null || !blocks.freeing(block)) {
            Optional<BlockHistory> history = blocks.find(address);
            if (history.isPresent()) {
                throw new UnknownAddressException(address, history.get());
            }
        }
        try {
            allocator.free(address, byteSize, device, stream);
        } catch (MemoryMisuseException found) {
            throw withBlock(found, blocks.find(address));
        }
        requireAnnounced(device, stream, true, address);
    }

    @Override
    public boolean recordUse(long address, int device, long stream) {
        if (blocks.live(address) == null) {
            Optional<BlockHistory> history = blocks.find(address);
            if (history.isPresent()) {
                throw new UnknownAddressException(address, history.get());
            }
        }
        requireAnnounced(device, stream, false, address);
        return allocator
                .extension(RecordsUse.class)
                .map(uses -> uses.recordUse(address, device, stream))
                .orElse(false);
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
        allocator.streamClosing(device, stream);
        String what =
                "stream 0x" + Long.toHexString(stream) + " of device " + device + " was destroyed, and its end not"
                        + " announced before by DeviceMemory.streamClosing; its cached memory was given up now";
        throw withBlock(new MemoryMisuseException(Fault.STREAM_END_NOT_ANNOUNCED, address, what), blocks.find(address));
    }

    private static MemoryMisuseException withBlock(MemoryMisuseException found, Optional<BlockHistory> block) {
        String what = String.valueOf(found.getMessage());
        return block.map(known -> new MemoryMisuseException(found.fault(), found.address(), what, known))
                .orElse(found);
    }

    @Override
    public Optional<BlockHistory> block(long address) {
        return blocks.find(address);
    }

    @Override
    public void streamClosing(int device, long stream) {
        streams.announced(device, stream);
        super.streamClosing(device, stream);
    }

    @Override
    public <T> Optional<T> extension(Class<T> type) {
        boolean lends = type == Lends.class && allocator.extension(Lends.class).isEmpty();
        return lends ? Optional.empty() : super.extension(type);
    }

    @Override
    public void close() {
        allocator.close();
    }
}
