package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.internal.memory.Contents;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.ManagedContents;
import io.cistern.simulated.internal.space.Mapping;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// Memory as running work sees it: by address, across mappings, with access checked. An address that is not
/// mapped, or that the device may not access, is illegal.
record DeviceView(Machine machine, DriverCall call, int device) {
    /// Handles one piece of a range, which lies in one mapping.
    interface Piece {
        void at(Contents contents, long offset, long byteSize, long done);
    }

    void forEachPiece(long address, long byteSize, boolean write, Piece piece) {
        long at = address;
        long end = address + byteSize;
        while (at < end) {
            Mapping mapping = machine.space.mappingAt(at);
            if (mapping == null) {
                throw illegal(Misuse.Kind.UNMAPPED_ACCESS, at, "nothing is mapped there when the work runs");
            }
            if (!mapping.allows(device, write)) {
                throw illegal(
                        Misuse.Kind.ACCESS_WITHOUT_RIGHTS, at, "device " + device + " may not access it that way");
            }
            long upTo = Math.min(end, mapping.end());
            if (mapping.block().contents() instanceof ManagedContents managed) {
                managed.moveTo(machine.device(device).budget, at - mapping.address(), upTo - at);
            }
            piece.at(mapping.block().contents(), at - mapping.address(), upTo - at, at - address);
            at = upTo;
        }
    }

    private DriverFailure illegal(Misuse.Kind kind, long address, String why) {
        machine.hazards.report(kind, call, device, address, "0x" + Long.toHexString(address) + ": " + why);
        return new DriverFailure(CudaResult.ILLEGAL_ADDRESS);
    }

    /// Fills with a word whose lowest byte goes to addresses that are multiples of 4.
    void fill(long address, long byteSize, int word) {
        forEachPiece(
                address,
                byteSize,
                true,
                (contents, offset, size, done) ->
                        contents.fill(offset, size, Contents.shifted(word, offset - address - done)));
    }

    void write(long address, byte[] source, int sourceOffset, int byteSize) {
        forEachPiece(
                address,
                byteSize,
                true,
                (contents, offset, size, done) ->
                        contents.write(offset, source, sourceOffset + (int) done, (int) size));
    }

    /// Copies a range; patterns stay patterns.
    void copy(DeviceView from, long source, long target, long byteSize) {
        List<Runnable> writes = new ArrayList<>();
        from.forEachRun(source, byteSize, new Contents.RunSink() {
            @Override
            public void pattern(long at, long length, int word) {
                long to = target + (at - source);
                writes.add(() -> fill(to, length, Contents.shifted(word, to - at)));
            }

            @Override
            public void data(long at, byte[] bytes, int bytesOffset, int length) {
                byte[] copy = Arrays.copyOfRange(bytes, bytesOffset, bytesOffset + length);
                writes.add(() -> write(target + (at - source), copy, 0, length));
            }
        });
        writes.forEach(Runnable::run);
    }

    /// Passes a range to a sink; offsets are addresses.
    void forEachRun(long address, long byteSize, Contents.RunSink sink) {
        forEachPiece(
                address,
                byteSize,
                false,
                (contents, offset, size, done) -> contents.forEachRun(offset, size, new Contents.RunSink() {
                    private final long shift = address + done - offset;

                    @Override
                    public void pattern(long at, long length, int word) {
                        sink.pattern(at + shift, length, Contents.shifted(word, shift));
                    }

                    @Override
                    public void data(long at, byte[] bytes, int bytesOffset, int length) {
                        sink.data(at + shift, bytes, bytesOffset, length);
                    }
                }));
    }
}
