package io.cistern.cuda.ffm;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.DriverCall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/// What one driver call needs: native memory for out-parameters and structs, and the foreign context to give
/// back.
///
/// ```
/// 0        8      16       24                          152        192           704
/// context  out    second   a struct, up to 128 bytes   location   64 pointers   the 64 values they point to
/// ```
///
/// A platform thread has a frame of its own. Virtual threads, of which there may be millions, take one from a
/// few slots and put it back: no call parks while it has a frame, so no more are in use than there are
/// carriers. Who finds the slot empty that its id points to, since another thread has its frame, takes the
/// next one. Either way a frame is used again and again, and a call makes no garbage, in the heap or outside.
final class Frame implements AutoCloseable {
    private static final long CONTEXT = 0;
    private static final long OUT = 8;
    private static final long SECOND = 16;
    private static final long STRUCT = 24;
    private static final long STRUCT_BYTES = 128;
    private static final long LOCATION = STRUCT + STRUCT_BYTES;
    private static final long POINTERS = 192;

    /// More arguments than most kernels take; others get memory of their own.
    static final int MAX_ARGUMENTS = 64;

    private static final long VALUES = POINTERS + 8 * MAX_ARGUMENTS;
    private static final long BYTES = VALUES + 8 * MAX_ARGUMENTS;

    /// All of native memory, for words by their address: the bounds and the life of a frame's own need no looking
    /// at. Its thread or its slot holds a frame during and after each call.
    @SuppressWarnings("restricted")
    private static final MemorySegment EVERYTHING = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private static final int NO_SLOT = -1;

    /// More slots than most machines have carriers, a power of two.
    private static final int SLOTS = 64;

    private static final int TABLE_SIZE = 1024;

    private static final ThreadLocal<Frame> OF_PLATFORM_THREAD =
            ThreadLocal.withInitial(() -> new Frame(NO_SLOT, Thread.currentThread()));

    /// Those of platform threads by the low bits of their ids: two reads and a comparison, where a thread-local
    /// takes some thirty instructions. Read and written without order: a thread takes only a frame that bears its
    /// own id, which it wrote itself.
    private static final @Nullable Frame[] OF_THREADS = new Frame[TABLE_SIZE];

    private static final AtomicReferenceArray<@Nullable Frame> OF_VIRTUAL_THREADS = new AtomicReferenceArray<>(SLOTS);

    /// How many were made for them: one a slot, so that most slots have one, and more only if all those are in
    /// use.
    private static final AtomicInteger MADE_FOR_SLOTS = new AtomicInteger();

    private final int slot;

    /// Never another thread's; 0 for a slot's, which is no thread's.
    private final long ownerId;

    private final WeakReference<Thread> owner;

    /// Freed with the frame: by the collector, once its thread is gone or its slot was taken.
    private final MemorySegment memory = Arena.ofAuto().allocate(BYTES, 64);

    private final long address = memory.address();
    private @Nullable Contexts contexts;
    private long foreign;
    private @Nullable CaptureShelter shelter;
    private int modeBefore;

    /// Kept only where assertions are on.
    private boolean inUse;

    /// Those of the driver that was called last in this frame; a process hardly ever has two.
    private CallCounts.@Nullable Local counters;

    private @Nullable CallCounts countersOf;

    /// The pointers stay as they are: a launch writes its values alone.
    private Frame(int slot, @Nullable Thread owner) {
        this.slot = slot;
        this.ownerId = owner == null ? 0 : owner.threadId();
        this.owner = new WeakReference<>(owner);
        for (int i = 0; i < MAX_ARGUMENTS; i++) {
            memory.set(JAVA_LONG, POINTERS + 8L * i, address + VALUES + 8L * i);
        }
    }

    /// A frame for a call that needs no context.
    static Frame acquire() {
        Thread thread = Thread.currentThread();
        long id = thread.threadId();
        Frame there = OF_THREADS[(int) id & (TABLE_SIZE - 1)];
        Frame frame = there != null && there.ownerId == id ? there : find(thread);
        assert frame.begins() : "one call inside another";
        return frame;
    }

    private static Frame find(Thread thread) {
        if (thread.isVirtual()) {
            return fromSlot();
        }
        Frame frame = OF_PLATFORM_THREAD.get();
        int at = (int) frame.ownerId & (TABLE_SIZE - 1);
        Frame there = OF_THREADS[at];
        if (there == null || there.isOrphan()) {
            OF_THREADS[at] = frame;
        }
        return frame;
    }

    private boolean begins() {
        boolean free = !inUse;
        inUse = true;
        return free;
    }

    private boolean ends() {
        inUse = false;
        return true;
    }

    private boolean isOrphan() {
        Thread thread = owner.get();
        return thread == null || !thread.isAlive();
    }

    private static Frame fromSlot() {
        int slot = (int) Thread.currentThread().threadId() & (SLOTS - 1);
        Frame frame = OF_VIRTUAL_THREADS.getAndSet(slot, null);
        if (frame == null && MADE_FOR_SLOTS.get() >= SLOTS) {
            frame = fromSlotAfter(slot);
        }
        if (frame == null) {
            MADE_FOR_SLOTS.incrementAndGet();
            frame = new Frame(slot, null);
        }
        return frame;
    }

    private static @Nullable Frame fromSlotAfter(int slot) {
        Frame frame = null;
        for (int i = 1; frame == null && i < SLOTS; i++) {
            frame = OF_VIRTUAL_THREADS.getAndSet((slot + i) & (SLOTS - 1), null);
        }
        return frame;
    }

    /// The collector takes what finds all slots full.
    private void toSlot() {
        for (int i = 0; i < SLOTS; i++) {
            if (OF_VIRTUAL_THREADS.compareAndSet((slot + i) & (SLOTS - 1), null, this)) {
                return;
            }
        }
    }

    /// Remembers the context to make current again when this frame closes.
    void giveBack(Contexts contexts, long foreign) {
        this.contexts = contexts;
        this.foreign = foreign;
    }

    /// Remembers the capture mode to set back when this frame closes.
    void shelter(CaptureShelter setBack, int mode) {
        shelter = setBack;
        modeBefore = mode;
    }

    /// Sets the capture mode back and makes the foreign context current again, if there was one.
    @Override
    public void close() {
        CaptureShelter left = shelter;
        if (left != null) {
            shelter = null;
            left.exchange(this, modeBefore);
        }
        Contexts restoring = contexts;
        if (restoring == null) {
            release();
            return;
        }
        contexts = null;
        try {
            restoring.restore(foreign);
        } finally {
            release();
        }
    }

    /// Gives the frame back after a call that changed neither context nor mode.
    void release() {
        assert ends();
        if (slot >= 0) {
            toSlot();
        }
    }

    /// Counts a call of a driver.
    void count(CallCounts counts, DriverCall call) {
        CallCounts.Local local = counters;
        if (local == null || countersOf != counts) {
            local = counts.local();
            counters = local;
            countersOf = counts;
        }
        local.count(call);
    }

    /// Address of the word that `cuCtxGetCurrent` writes.
    long contextOut() {
        return address + CONTEXT;
    }

    void setContext(long value) {
        memory.set(JAVA_LONG, CONTEXT, value);
    }

    long context() {
        return memory.get(JAVA_LONG, CONTEXT);
    }

    /// Address of the first out-parameter, 8 bytes.
    long out() {
        return address + OUT;
    }

    /// Address of the first out-parameter, set to 0: for functions that write 1, 4 or 8 bytes, as they like.
    long zeroedOut() {
        setOut(0);
        return out();
    }

    void setOut(long value) {
        memory.set(JAVA_LONG, OUT, value);
    }

    long outLong() {
        return EVERYTHING.get(JAVA_LONG, address + OUT);
    }

    int outInt() {
        return memory.get(JAVA_INT, OUT);
    }

    float outFloat() {
        return memory.get(JAVA_FLOAT, OUT);
    }

    /// Address of the second out-parameter, 8 bytes.
    long secondOut() {
        return address + SECOND;
    }

    long secondOutLong() {
        return memory.get(JAVA_LONG, SECOND);
    }

    /// Zeroed memory for a struct.
    MemorySegment struct() {
        return memory.asSlice(STRUCT, STRUCT_BYTES).fill((byte) 0);
    }

    /// Memory for a `CUmemLocation`.
    MemorySegment location() {
        return memory.asSlice(LOCATION, Structs.LOCATION.byteSize());
    }

    /// The address of an array of pointers, one to each value of a launch.
    long arguments() {
        return address + POINTERS;
    }

    /// Sets a value of a launch; of one that is shorter, the first bytes count.
    void setArgument(int index, long bits) {
        memory.set(JAVA_LONG, VALUES + 8L * index, bits);
    }
}
