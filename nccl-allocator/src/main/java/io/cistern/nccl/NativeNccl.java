package io.cistern.nccl;

import io.cistern.cuda.Devices;
import io.cistern.nccl.Collective.Kind;
import io.cistern.nccl.NcclApi.Handle;
import io.cistern.nccl.internal.call.NcclCall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/// Calls libnccl. Calls that create or end something find the device by the calling thread's current context,
/// so it is set before them and restored after them. For a group, it is set and restored once, not for each
/// call.
final class NativeNccl implements NcclApi {
    /// `NCCL_WIN_COLL_SYMMETRIC`
    private static final int SYMMETRIC = 1;

    /// `CU_STREAM_PER_THREAD`. The numbers up to it name default streams; they are not handles.
    private static final long LAST_DEFAULT_STREAM = 2;

    private final NcclLibrary library;
    private final Devices devices;
    private final Map<Kind, NcclFunction> moving = new EnumMap<>(Kind.class);
    private final NcclFunction getUniqueId;
    private final NcclFunction initAll;
    private final NcclFunction initRank;
    private final NcclFunction split;
    private final NcclFunction count;
    private final NcclFunction userRank;
    private final NcclFunction getAsyncError;
    private final NcclFunction groupStart;
    private final NcclFunction groupEnd;
    private final NcclFunction memAlloc;
    private final NcclFunction register;
    private final NcclFunction windowRegister;

    NativeNccl(NcclLibrary library, Devices devices) {
        this.library = library;
        this.devices = devices;
        for (Kind kind : Kind.values()) {
            moving.put(kind, library.function(NcclCall.valueOf(kind.name())));
        }
        getUniqueId = library.function(NcclCall.GET_UNIQUE_ID);
        initAll = library.function(NcclCall.COMM_INIT_ALL);
        initRank = library.function(NcclCall.COMM_INIT_RANK);
        split = library.function(NcclCall.COMM_SPLIT);
        count = library.function(NcclCall.COMM_COUNT);
        userRank = library.function(NcclCall.COMM_USER_RANK);
        getAsyncError = library.function(NcclCall.COMM_GET_ASYNC_ERROR);
        groupStart = library.function(NcclCall.GROUP_START);
        groupEnd = library.function(NcclCall.GROUP_END);
        memAlloc = library.function(NcclCall.MEM_ALLOC);
        register = library.function(NcclCall.COMM_REGISTER);
        windowRegister = library.function(NcclCall.COMM_WINDOW_REGISTER);
    }

    @Override
    public int version() {
        return library.version();
    }

    @Override
    public String description() {
        return library.name() + ", NCCL " + NcclLibrary.text(library.version());
    }

    @Override
    public UniqueId uniqueId() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = arena.allocate(UniqueId.BYTES);
            getUniqueId.check(getUniqueId.call(id.address()), "");
            return UniqueId.of(id.toArray(ValueLayout.JAVA_BYTE));
        }
    }

    @Override
    public long[] initAll(int[] ordinals) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG, ordinals.length);
            MemorySegment list = arena.allocateFrom(ValueLayout.JAVA_INT, ordinals);
            onDevice(
                    ordinals[0],
                    () -> initAll.check(
                            initAll.call(out.address(), ordinals.length, list.address()),
                            "devices=" + Arrays.toString(ordinals)));
            return out.toArray(ValueLayout.JAVA_LONG);
        }
    }

    @Override
    public long[] initRanks(UniqueId id, int rankCount, int firstRank, int[] ordinals) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, id.toBytes());
            return together(
                    arena,
                    ordinals.length,
                    (i, out) -> onDevice(
                            ordinals[i],
                            () -> initRank.check(
                                    initRank.call(out, rankCount, bytes, firstRank + i),
                                    "rankCount=" + rankCount + ", rank=" + (firstRank + i) + ", device="
                                            + ordinals[i])));
        }
    }

    @Override
    public long[] split(Handle[] communicators, int[] colors, int[] keys) {
        try (Arena arena = Arena.ofConfined()) {
            return together(
                    arena,
                    communicators.length,
                    (i, out) -> onDevice(communicators[i].device(), () -> {
                        long communicator = communicators[i].value();
                        int color = Math.max(-1, colors[i]); // NCCL_SPLIT_NOCOLOR
                        int code = split.call(communicator, color, keys[i], out, 0L);
                        split.check(code, "color=" + color + ", key=" + keys[i]);
                    }));
        }
    }

    /// A call for one of several ranks; NCCL writes its result at the end of the group.
    private interface RankCall {
        void make(int index, long out);
    }

    /// Makes calls for several ranks as a group, since each of them waits for the others.
    private long[] together(Arena arena, int ranks, RankCall call) {
        MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG, ranks);
        Group.around(this, () -> {
            for (int i = 0; i < ranks; i++) {
                call.make(i, out.address() + (long) i * Long.BYTES);
            }
        });
        return out.toArray(ValueLayout.JAVA_LONG);
    }

    @Override
    public int rankCount(Handle communicator) {
        return number(count, communicator);
    }

    @Override
    public int rank(Handle communicator) {
        return number(userRank, communicator);
    }

    @Override
    public NcclResult asyncError(Handle communicator) {
        return NcclResult.of(number(getAsyncError, communicator));
    }

    private static int number(NcclFunction function, Handle communicator) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            function.check(function.call(communicator.value(), out.address()), text(communicator));
            return out.get(ValueLayout.JAVA_INT, 0);
        }
    }

    @Override
    public void finish(Handle communicator) {
        end(NcclCall.COMM_FINALIZE, communicator);
    }

    @Override
    public void destroy(Handle communicator) {
        end(NcclCall.COMM_DESTROY, communicator);
    }

    @Override
    public void abort(Handle communicator) {
        end(NcclCall.COMM_ABORT, communicator);
    }

    private void end(NcclCall call, Handle communicator) {
        NcclFunction function = library.function(call);
        onDevice(communicator.device(), () -> function.check(function.call(communicator.value()), text(communicator)));
    }

    @Override
    public void groupStart() {
        groupStart.check(groupStart.call(), "");
    }

    @Override
    public void groupEnd() {
        groupEnd.check(groupEnd.call(), "");
    }

    @Override
    public void enqueue(Handle communicator, Collective call, long stream) {
        if (stream >= 0 && stream <= LAST_DEFAULT_STREAM) {
            onDevice(communicator.device(), () -> move(communicator, call, stream));
        } else {
            move(communicator, call, stream);
        }
    }

    private void move(Handle communicator, Collective call, long stream) {
        if (call.kind() == Kind.ALL_TO_ALL && !function(Kind.ALL_TO_ALL).present()) {
            exchange(communicator, call, stream);
            return;
        }
        NcclFunction function = function(call.kind());
        int code = call(function, communicator.value(), call, stream);
        if (code != NcclResult.SUCCESS.code()) {
            throw function.failed(code, call + ", stream=" + hex(stream));
        }
    }

    private NcclFunction function(Kind kind) {
        return Objects.requireNonNull(moving.get(kind));
    }

    private static int call(NcclFunction function, long communicator, Collective call, long stream) {
        int type = call.type().code();
        int op = call.op().code();
        long send = call.send();
        long receive = call.receive();
        long count = call.count();
        return switch (call.kind()) {
            case ALL_REDUCE, REDUCE_SCATTER -> function.call(send, receive, count, type, op, communicator, stream);
            case BROADCAST -> function.call(send, receive, count, type, call.peer(), communicator, stream);
            case REDUCE -> function.call(send, receive, count, type, op, call.peer(), communicator, stream);
            case ALL_GATHER, ALL_TO_ALL -> function.call(send, receive, count, type, communicator, stream);
            case SEND -> function.call(send, count, type, call.peer(), communicator, stream);
            case RECEIVE -> function.call(receive, count, type, call.peer(), communicator, stream);
        };
    }

    /// Makes an all-to-all for versions before 2.28.3 as NCCL's manual does: as a group of sends and receives.
    private void exchange(Handle communicator, Collective call, long stream) {
        int ranks = rankCount(communicator);
        long part = call.count() * call.type().byteSize();
        Group.around(this, () -> {
            for (int peer = 0; peer < ranks; peer++) {
                long from = call.send() + peer * part;
                long to = call.receive() + peer * part;
                DataType type = call.type();
                move(communicator, Collective.moving(Kind.SEND, from, 0, call.count(), type, peer), stream);
                move(communicator, Collective.moving(Kind.RECEIVE, 0, to, call.count(), type, peer), stream);
            }
        });
    }

    @Override
    public long allocate(int device, long byteSize) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            onDevice(
                    device,
                    () -> memAlloc.check(
                            memAlloc.call(out.address(), byteSize), "device=" + device + ", byteSize=" + byteSize));
            return out.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    @Override
    public void free(int device, long address) {
        NcclFunction memFree = library.function(NcclCall.MEM_FREE);
        onDevice(device, () -> memFree.check(memFree.call(address), "address=" + hex(address)));
    }

    @Override
    public long register(Handle communicator, long address, long byteSize) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            onDevice(
                    communicator.device(),
                    () -> register.check(
                            register.call(communicator.value(), address, byteSize, out.address()),
                            text(communicator) + ", address=" + hex(address) + ", byteSize=" + byteSize));
            return out.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    @Override
    public void deregister(Handle communicator, long registration) {
        drop(NcclCall.COMM_DEREGISTER, communicator, registration);
    }

    @Override
    public long[] registerWindows(Handle[] communicators, long[] addresses, long byteSize) {
        try (Arena arena = Arena.ofConfined()) {
            return together(
                    arena,
                    communicators.length,
                    (i, out) -> onDevice(communicators[i].device(), () -> {
                        long communicator = communicators[i].value();
                        int code = windowRegister.call(communicator, addresses[i], byteSize, out, SYMMETRIC);
                        windowRegister.check(
                                code,
                                text(communicators[i]) + ", address=" + hex(addresses[i]) + ", byteSize=" + byteSize);
                    }));
        }
    }

    @Override
    public void deregisterWindow(Handle communicator, long window) {
        drop(NcclCall.COMM_WINDOW_DEREGISTER, communicator, window);
    }

    private void drop(NcclCall call, Handle communicator, long handle) {
        NcclFunction function = library.function(call);
        onDevice(
                communicator.device(),
                () -> function.check(function.call(communicator.value(), handle), "handle=" + hex(handle)));
    }

    @Override
    public void onDevice(int device, Runnable calls) {
        long before = devices.enterContext(device);
        try {
            calls.run();
        } finally {
            devices.leaveContext(device, before);
        }
    }

    private static String text(Handle communicator) {
        return "communicator=" + hex(communicator.value()) + ", device=" + communicator.device();
    }

    private static String hex(long value) {
        return "0x" + Long.toHexString(value);
    }
}
