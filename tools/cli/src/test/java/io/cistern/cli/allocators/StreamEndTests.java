package io.cistern.cli.allocators;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.buffers.dlpack.Dlpack;
import io.cistern.buffers.dlpack.DlpackTensor;
import io.cistern.buffers.dlpack.TensorLayout;
import io.cistern.buffers.dlpack.TensorType;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// What is closed after its stream ends in a safe order: its handle is not used any more, and its memory serves
/// others only when the work of the stream has passed, also if the handle has come again.
final class StreamEndTests {
    private static final long BYTES = 1 << 20;
    private static final long LONG = 1_000_000_000;

    private final SimulatedGpu gpu = EveryAllocator.gpu();
    private final DeviceMemory memory = EveryAllocator.memory(gpu);
    private final List<DeviceBuffer> others = new ArrayList<>();

    /// What holds a stream.
    private interface Holder extends AutoCloseable {
        /// Enqueues a write of its memory.
        void write(long stream);

        @Override
        void close();
    }

    private enum Kind {
        BUFFER {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                DeviceBuffer buffer = DeviceBuffer.allocate(memory, BYTES, 0, stream);
                return holder(buffer, buffer::close);
            }
        },
        BUFFER_USED_ELSEWHERE {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                DeviceBuffer buffer = DeviceBuffer.allocate(memory, BYTES, 0, stream);
                CudaStream other = CudaStream.open(memory, 0);
                other.await(CudaStream.ofForeign(memory, 0, stream));
                buffer.fill((byte) 1, other.handle());
                return holder(buffer, () -> {
                    buffer.close();
                    other.close();
                });
            }
        },
        BUFFER_USED_ON_AN_ENDED_STREAM {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                DeviceBuffer buffer = DeviceBuffer.allocate(memory, BYTES, 0, stream);
                try (CudaStream other = CudaStream.open(memory, 0)) {
                    other.await(CudaStream.ofForeign(memory, 0, stream));
                    buffer.fill((byte) 1, other.handle());
                }
                return holder(buffer, buffer::close);
            }
        },
        RAW {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                long address = memory.allocate(BYTES, 0, stream);
                return holder(memory, address, () -> memory.free(address, stream));
            }
        },
        RETAINED_SLICE {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                try (DeviceBuffer whole = DeviceBuffer.allocate(memory, BYTES, 0, stream)) {
                    DeviceBuffer slice = whole.retainedSlice(0, BYTES);
                    return holder(slice, slice::close);
                }
            }
        },
        ARENA {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                DeviceArena arena =
                        DeviceArena.builder(memory).firstBytes(BYTES).open(0, stream);
                return holder(memory, arena.allocate(BYTES), arena::close);
            }
        },
        TENSOR {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                DeviceBuffer buffer = DeviceBuffer.allocate(memory, BYTES, 0, stream);
                long tensor = Dlpack.share(buffer, TensorLayout.compact(TensorType.UINT8, BYTES), stream);
                long address = buffer.address();
                buffer.close();
                return holder(memory, address, () -> delete(tensor));
            }
        },
        TAKEN_TENSOR {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                return lent(memory, stream, (buffer, on) -> {
                    long tensor = Dlpack.share(buffer, TensorLayout.compact(TensorType.UINT8, BYTES), Dlpack.NO_STREAM);
                    DlpackTensor taken = Dlpack.take(tensor, CudaStream.ofForeign(memory, 0, on));
                    return taken::close;
                });
            }
        },
        BORROWED {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                return lent(memory, stream, (buffer, on) -> {
                    DeviceBuffer retained = buffer.retainedSlice(0, BYTES);
                    return DeviceBuffer.ofBorrowed(memory, buffer.address(), BYTES, 0, on, (_, last) -> {
                        retained.recordUse(last);
                        retained.close();
                    })::close;
                });
            }
        },
        BORROWED_USED_ELSEWHERE {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                return lent(memory, stream, (buffer, on) -> {
                    DeviceBuffer retained = buffer.retainedSlice(0, BYTES);
                    DeviceBuffer borrowed =
                            DeviceBuffer.ofBorrowed(memory, buffer.address(), BYTES, 0, on, (_, last) -> {
                                retained.recordUse(last);
                                retained.close();
                            });
                    borrowed.recordUse(0);
                    return borrowed::close;
                });
            }
        },
        BORROWED_CLOSED_AFTER_AN_EVENT {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                return lent(memory, stream, (buffer, on) -> {
                    DeviceBuffer retained = buffer.retainedSlice(0, BYTES);
                    DeviceBuffer borrowed =
                            DeviceBuffer.ofBorrowed(memory, buffer.address(), BYTES, 0, on, (_, last) -> {
                                retained.recordUse(last);
                                retained.close();
                            });
                    CudaEvent event = CudaEvent.open(memory, 0);
                    event.record(CudaStream.ofForeign(memory, 0, 0));
                    return () -> {
                        borrowed.closeAfter(event);
                        event.close();
                    };
                });
            }
        },
        FOREIGN {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                long address = memory.driver().memory().allocate(0, BYTES);
                CudaStream lasting = CudaStream.open(memory, 0);
                DeviceBuffer foreign = DeviceBuffer.ofForeign(memory, address, BYTES, 0, stream, (_, last) -> {
                    lasting.await(CudaStream.ofForeign(memory, 0, last));
                    memory.driver().copies().fillBytes(0, address, (byte) 4, BYTES, lasting.handle());
                    lasting.synchronize();
                    memory.driver().memory().free(0, address);
                });
                return holder(memory, address, () -> {
                    foreign.close();
                    lasting.close();
                });
            }
        },
        SPILLABLE {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                SpillStore store = SpillStore.open(memory, 0, Path.of(System.getProperty("java.io.tmpdir")));
                SpillableBuffer buffer = store.allocate(BYTES, 0, stream, 0);
                return new Holder() {
                    @Override
                    public void write(long on) {
                        try (SpillableBuffer.Lease lease = buffer.acquire(on)) {
                            memory.driver().copies().fillBytes(0, lease.address(), (byte) 1, BYTES, on);
                        }
                    }

                    @Override
                    public void close() {
                        buffer.close();
                        store.close();
                    }
                };
            }
        },
        PINNED {
            @Override
            Holder open(DeviceMemory memory, long stream) {
                PinnedBuffer pinned = PinnedMemory.of(memory).allocate(BYTES);
                DeviceBuffer source = DeviceBuffer.allocate(memory, BYTES, 0, stream);
                return new Holder() {
                    @Override
                    public void write(long on) {
                        source.copyTo(pinned, on, CopyMode.NON_BLOCKING);
                    }

                    @Override
                    public void close() {
                        pinned.close();
                        source.close();
                    }
                };
            }
        };

        abstract Holder open(DeviceMemory memory, long stream);

        /// Borrows the memory of a buffer whose owner uses it on a stream that stays.
        private static Holder lent(
                DeviceMemory memory, long stream, BiFunction<DeviceBuffer, Long, Runnable> borrowing) {
            CudaStream owners = CudaStream.open(memory, 0);
            DeviceBuffer buffer = DeviceBuffer.allocate(BYTES, owners);
            long address = buffer.address();
            Runnable closing = borrowing.apply(buffer, stream);
            buffer.close();
            return holder(memory, address, () -> {
                closing.run();
                owners.close();
            });
        }

        private static Holder holder(DeviceBuffer buffer, Runnable closing) {
            return holder(buffer.memory(), buffer.address(), closing);
        }

        private static Holder holder(DeviceMemory memory, long address, Runnable closing) {
            return new Holder() {
                @Override
                public void write(long stream) {
                    memory.driver().copies().fillBytes(0, address, (byte) 1, BYTES, stream);
                }

                @Override
                public void close() {
                    closing.run();
                }
            };
        }

        @SuppressWarnings("restricted")
        private static void delete(long tensor) {
            long deleter = MemorySegment.ofAddress(tensor).reinterpret(80).get(ValueLayout.JAVA_LONG, 16);
            try {
                Linker.nativeLinker()
                        .downcallHandle(
                                MemorySegment.ofAddress(deleter), FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG))
                        .invoke(tensor);
            } catch (Throwable failure) {
                throw new AssertionError(failure);
            }
        }
    }

    static Stream<Arguments> all() {
        return EveryAllocator.specs().stream()
                .flatMap(spec -> Stream.of(Kind.values()).map(kind -> Arguments.of(spec, kind)));
    }

    @AfterEach
    void everythingIsGivenBack() {
        others.forEach(DeviceBuffer::close);
        assertThat(memory.liveBlocks()).isEmpty();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(1L << 30);
        gpu.close();
    }

    @ParameterizedTest
    @MethodSource("all")
    void whatIsClosedAfterItsStreamEndsSafely(String spec, Kind kind) {
        memory.setCurrent(spec);
        CudaStream before = CudaStream.open(memory, 0);
        Holder holder = busy(kind, before);
        before.close();
        holder.close();
        useMemory();
    }

    @ParameterizedTest
    @MethodSource("all")
    void whatIsClosedOnAHandleThatCameAgainEndsSafely(String spec, Kind kind) {
        memory.setCurrent(spec);
        CudaStream before = CudaStream.open(memory, 0);
        List<Holder> holders = new ArrayList<>(List.of(busy(kind, before), busy(kind, before), busy(kind, before)));
        long handle = before.handle();
        before.close();
        try (CudaStream again = CudaStream.open(memory, 0)) {
            assertThat(again.handle()).isEqualTo(handle);
            holders.removeFirst().close(); // before the new stream has asked for anything
            useMemory();
            others.add(DeviceBuffer.allocate(memory, BYTES, 0, again.handle()));
            others.getLast().fill((byte) 2);
            holders.removeFirst().close();
            useMemory();
            close(others);
        }
        holders.removeFirst().close();
        useMemory();
    }

    /// What hands the contents of a buffer to another stream.
    private enum Handing {
        MOVED {
            @Override
            DeviceBuffer to(CudaStream next, DeviceBuffer buffer) {
                return buffer.moveToStream(next);
            }
        },
        MOVED_SLICE {
            @Override
            DeviceBuffer to(CudaStream next, DeviceBuffer buffer) {
                DeviceBuffer slice = buffer.retainedSlice(0, BYTES);
                buffer.close();
                return slice.moveToStream(next);
            }
        },
        MOVED_PART {
            @Override
            DeviceBuffer to(CudaStream next, DeviceBuffer buffer) {
                try (buffer) {
                    return buffer.retainedSlice(0, BYTES).moveToStream(next);
                }
            }
        },
        COPIED {
            @Override
            DeviceBuffer to(CudaStream next, DeviceBuffer buffer) {
                try (buffer) {
                    DeviceBuffer target = DeviceBuffer.allocate(BYTES, next);
                    target.copyFrom(buffer);
                    return target;
                }
            }
        },
        COPIED_TO_ITS_STREAM {
            @Override
            DeviceBuffer to(CudaStream next, DeviceBuffer buffer) {
                DeviceBuffer source = DeviceBuffer.allocate(BYTES, next);
                source.fill((byte) 1);
                buffer.copyFrom(source);
                source.close();
                return buffer.moveToStream(next);
            }
        },
        SHARED {
            @Override
            DeviceBuffer to(CudaStream next, DeviceBuffer buffer) {
                long tensor =
                        Dlpack.share(buffer, TensorLayout.compact(TensorType.UINT8, BYTES), Dlpack.streamNumber(next));
                buffer.close();
                return Dlpack.take(tensor, next).buffer();
            }
        };

        abstract DeviceBuffer to(CudaStream next, DeviceBuffer buffer);
    }

    /// The stream that receives a buffer.
    private enum Next {
        ANOTHER,
        ANOTHER_WHILE_THE_HANDLE_IS_IN_USE,
        OF_THE_SAME_HANDLE
    }

    static Stream<Arguments> handings() {
        return EveryAllocator.specs().stream()
                .flatMap(spec -> Stream.of(Handing.values())
                        .flatMap(handing -> Stream.of(Next.values()).map(next -> Arguments.of(spec, handing, next))));
    }

    @ParameterizedTest
    @MethodSource("handings")
    void aBufferIsHandedOnAfterItsStreamEnds(String spec, Handing handing, Next next) {
        memory.setCurrent(spec);
        try (CudaStream another = CudaStream.open(memory, 0)) {
            CudaStream before = CudaStream.open(memory, 0);
            DeviceBuffer buffer = DeviceBuffer.allocate(BYTES, before);
            gpu.keepBusy(0, before.handle(), LONG);
            buffer.fill((byte) (handing == Handing.COPIED_TO_ITS_STREAM ? 5 : 1));
            long handle = before.handle();
            before.close();
            if (next == Next.ANOTHER) {
                handOn(handing, another, buffer);
            } else {
                try (CudaStream again = CudaStream.open(memory, 0)) {
                    assertThat(again.handle()).isEqualTo(handle);
                    handOn(handing, next == Next.OF_THE_SAME_HANDLE ? again : another, buffer);
                }
            }
        }
        useMemory();
    }

    private static void handOn(Handing handing, CudaStream next, DeviceBuffer buffer) {
        byte[] contents = new byte[(int) BYTES];
        try (DeviceBuffer received = handing.to(next, buffer)) {
            received.copyTo(MemorySegment.ofArray(contents));
        }
        assertThat(contents).containsOnly(1);
    }

    private Holder busy(Kind kind, CudaStream stream) {
        Holder holder = kind.open(memory, stream.handle());
        gpu.keepBusy(0, stream.handle(), LONG);
        holder.write(stream.handle());
        return holder;
    }

    /// Allocates and writes on a new stream, while the former one is at work.
    private void useMemory() {
        try (CudaStream other = CudaStream.open(memory, 0)) {
            List<DeviceBuffer> written = new ArrayList<>();
            for (int block = 0; block < 4; block++) {
                DeviceBuffer buffer = DeviceBuffer.allocate(memory, BYTES, 0, other.handle());
                buffer.fill((byte) 3);
                written.add(buffer);
            }
            close(written);
        }
    }

    private static void close(List<DeviceBuffer> buffers) {
        Collections.reverse(buffers);
        buffers.forEach(DeviceBuffer::close);
        buffers.clear();
    }
}
