package io.cistern.benchmarks;

import io.cistern.CudaStream;
import io.cistern.cuda.Copies;
import io.cistern.cuda.Events;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.Locale;

/// Copies of an array through a few pieces of pinned memory in turns, in one of the shapes that are compared.
@SuppressWarnings("restricted")
final class ArrayStaging implements AutoCloseable {
    private static final int DEVICE = 0;

    private static final MethodHandle MEMCPY = Linker.nativeLinker()
            .downcallHandle(
                    Linker.nativeLinker().defaultLookup().findOrThrow("memcpy"),
                    FunctionDescriptor.of(
                            ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG),
                    Linker.Option.critical(true));

    /// Who moves the bytes between array and piece: [MemorySegment#copyFrom], or C's `memcpy` called without a
    /// transition.
    enum Mover {
        SEGMENT,
        MEMCPY;

        void move(MemorySegment source, MemorySegment target) {
            if (this == SEGMENT) {
                target.copyFrom(source);
                return;
            }
            try {
                MemorySegment _ = (MemorySegment) ArrayStaging.MEMCPY.invokeExact(target, source, source.byteSize());
            } catch (Throwable impossible) {
                throw new AssertionError(impossible);
            }
        }

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private enum Kind {
        PLAIN(""),
        FIRST_SHORT(", the first a quarter"),
        WRITE_COMBINED(", write-combined"),
        MADE_ANEW(", made for each copy");

        private final String text;

        Kind(String text) {
            this.text = text;
        }
    }

    /// Sizes, and how many in turns.
    record Shape(int pieceBytes, int turns, Mover mover, Kind kind) {
        Shape(int pieceBytes, int turns, Mover mover) {
            this(pieceBytes, turns, mover, Kind.PLAIN);
        }

        /// The first piece is a quarter as long, so that the device begins early.
        Shape firstShort() {
            return new Shape(pieceBytes, turns, mover, Kind.FIRST_SHORT);
        }

        /// Writes pass the cache; reading would be slow.
        Shape writeCombined() {
            return new Shape(pieceBytes, turns, mover, Kind.WRITE_COMBINED);
        }

        /// Memory from the cache, and events, for each copy.
        Shape madeAnew() {
            return new Shape(pieceBytes, turns, mover, Kind.MADE_ANEW);
        }

        private long firstBytes() {
            return kind == Kind.FIRST_SHORT ? pieceBytes / 4 : pieceBytes;
        }

        @Override
        public String toString() {
            return turns + " pieces of " + (pieceBytes >> 10) + " KiB, " + mover + kind.text;
        }
    }

    private final OpenMemory open;
    private final CudaStream stream;
    private final Copies copies;
    private final Events events;
    private final Shape shape;
    private final Runnable end;
    private final MemorySegment pinned;
    private final long[] passed;

    ArrayStaging(OpenMemory open, CudaStream stream, ArrayWithDriver withDriver, Shape shape) {
        this.open = open;
        this.stream = stream;
        this.shape = shape;
        copies = open.driver().copies();
        events = open.driver().events();
        long byteSize = (long) shape.turns() * shape.pieceBytes();
        if (shape.kind() == Kind.WRITE_COMBINED) {
            pinned = withDriver.writeCombined(byteSize);
            end = () -> {};
        } else {
            var buffer = open.memory().pinned().allocate(byteSize);
            pinned = buffer.segment();
            end = buffer::close;
        }
        passed = new long[shape.turns()];
        Arrays.setAll(passed, _ -> events.create(DEVICE));
    }

    /// A piece, and all behind it.
    MemorySegment piece(int turn, long byteSize) {
        return pinned.asSlice((long) turn * shape.pieceBytes(), byteSize);
    }

    void toDevice(long target, MemorySegment source) {
        if (shape.kind() == Kind.MADE_ANEW) {
            try (var buffer = open.memory().pinned().allocate((long) shape.turns() * shape.pieceBytes())) {
                long[] anew = new long[shape.turns()];
                Arrays.setAll(anew, _ -> events.create(DEVICE));
                toDevice(target, source, buffer.segment(), anew);
                for (long event : anew) {
                    events.destroy(DEVICE, event);
                }
                buffer.recordUse(DEVICE, stream.handle());
            }
        } else {
            toDevice(target, source, pinned, passed);
        }
    }

    private void toDevice(long target, MemorySegment source, MemorySegment memory, long[] marks) {
        int turn = 0;
        long length;
        for (long at = 0; at < source.byteSize(); at += length) {
            length = Math.min(at == 0 ? shape.firstBytes() : shape.pieceBytes(), source.byteSize() - at);
            MemorySegment piece = memory.asSlice((long) turn * shape.pieceBytes(), length);
            events.synchronize(DEVICE, marks[turn]);
            shape.mover().move(source.asSlice(at, length), piece);
            copies.toDevice(DEVICE, target + at, piece, length, stream.handle());
            events.record(DEVICE, marks[turn], stream.handle());
            turn = (turn + 1) % shape.turns();
        }
    }

    void toHost(MemorySegment target, long source) {
        long ahead = (long) shape.turns() * shape.pieceBytes();
        for (long at = 0; at < target.byteSize() + ahead; at += shape.pieceBytes()) {
            int turn = (int) (at / shape.pieceBytes() % shape.turns());
            long there = at - ahead;
            if (there >= 0 && there < target.byteSize()) {
                MemorySegment bytes = target.asSlice(there, Math.min(shape.pieceBytes(), target.byteSize() - there));
                events.synchronize(DEVICE, passed[turn]);
                shape.mover().move(piece(turn, bytes.byteSize()), bytes);
            }
            if (at < target.byteSize()) {
                long length = Math.min(shape.pieceBytes(), target.byteSize() - at);
                copies.toHost(DEVICE, piece(turn, length), source + at, length, stream.handle());
                events.record(DEVICE, passed[turn], stream.handle());
            }
        }
    }

    @Override
    public void close() {
        for (long event : passed) {
            events.destroy(DEVICE, event);
        }
        end.run();
    }
}
