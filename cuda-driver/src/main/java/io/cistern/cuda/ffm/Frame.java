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

/// The state of one driver call: native memory for out-parameters and structs, and the foreign context to
/// restore.
///
/// ```
/// 0        8      16       24                          152        192           704
/// context  out    second   a struct, up to 128 bytes   location   64 pointers   the 64 values they point to
/// ```
///
/// A platform thread has its own frame. Virtual threads, of which there may be millions, take a frame from a
/// few slots and put it back: no call parks while it has a frame, so at most as many are in use as there are
/// carriers. If its slot is empty, a thread makes another frame, up to one a slot, and then takes one from
/// another slot. So frames are reused, and a call makes no garbage on the heap or outside.
final class Frame implements AutoCloseable {
    private static final long CONTEXT = 0;
    private static final long OUT = 8;
    private static final long SECOND = 16;
    private static final long STRUCT = 24;
    private static final long STRUCT_BYTES = 128;
    private static final long LOCATION = STRUCT + STRUCT_BYTES;
    private static final long POINTERS = 192;

    /// More arguments than most kernels take; launches with more allocate their own memory.
    static final int MAX_ARGUMENTS = 64;

    private static final long VALUES = POINTERS + 8 * MAX_ARGUMENTS;
    private static final long BYTES = VALUES + 8 * MAX_ARGUMENTS;

    /// All of native memory, to access words by address without checking a frame's bounds or liveness. A
    /// frame's thread or slot keeps it alive during and after each call.
    @SuppressWarnings("restricted")
    private static final MemorySegment EVERYTHING = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private static final int NO_SLOT = -1;

    /// More slots than most machines have carriers. A power of two.
    private static final int SLOTS = 64;

    private static final int TABLE_SIZE = 1024;

    private static final ThreadLocal<Frame> OF_PLATFORM_THREAD =
            ThreadLocal.withInitial(() -> new Frame(NO_SLOT, Thread.currentThread()));

    /// Frames of platform threads by the low bits of their ids: faster than a thread-local. Read and written
    /// without order: a thread takes only a frame with its own id, which it wrote itself.
    private static final @Nullable Frame[] OF_THREADS = new Frame[TABLE_SIZE];

    private static final AtomicReferenceArray<@Nullable Frame> OF_VIRTUAL_THREADS = new AtomicReferenceArray<>(SLOTS);

    /// The number of frames made for slots. Beyond one a slot, a frame is made only if all slots are empty.
    private static final AtomicInteger MADE_FOR_SLOTS = new AtomicInteger();

    private final int slot;

    /// The id of the owning thread, never another thread's; 0 for a frame of a slot, which no thread owns.
    private final long ownerId;

    private final WeakReference<Thread> owner;

    /// The collector frees it with the frame, once the thread is gone or the slots are full.
    private final MemorySegment memory = Arena.ofAuto().allocate(BYTES, 64);

    private final long address = memory.address();
    private @Nullable Contexts contexts;
    private long foreign;
    private @Nullable CaptureShelter shelter;
    private int modeBefore;

    /// Maintained only if assertions are on.
    private boolean inUse;

    /// The counters of the driver that was called last in this frame; a process hardly ever has two drivers.
    private CallCounts.@Nullable Local counters;

    private @Nullable CallCounts countersOf;

    /// The pointers never change: a launch writes only values.
    private Frame(int slot, @Nullable Thread owner) {
        this.slot = slot;
        this.ownerId = owner == null ? 0 : owner.threadId();
        this.owner = new WeakReference<>(owner);
        for (int i = 0; i < MAX_ARGUMENTS; i++) {
            memory.set(JAVA_LONG, POINTERS + 8L * i, address + VALUES + 8L * i);
        }
    }

    /// Returns a frame for a call that needs no context.
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

    /// Puts the frame into a slot. If all slots are full, the collector takes it.
    private void toSlot() {
        for (int i = 0; i < SLOTS; i++) {
            if (OF_VIRTUAL_THREADS.compareAndSet((slot + i) & (SLOTS - 1), null, this)) {
                return;
            }
        }
    }

    void giveBack(Contexts contexts, long foreign) {
        this.contexts = contexts;
        this.foreign = foreign;
    }

    void shelter(CaptureShelter setBack, int mode) {
        shelter = setBack;
        modeBefore = mode;
    }

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

    /// Releases the frame after a call that changed neither context nor mode.
    void release() {
        assert ends();
        if (slot >= 0) {
            toSlot();
        }
    }

    void count(CallCounts counts, DriverCall call) {
        CallCounts.Local local = counters;
        if (local == null || countersOf != counts) {
            local = counts.local();
            counters = local;
            countersOf = counts;
        }
        local.count(call);
    }

    /// Returns the address of the word that `cuCtxGetCurrent` writes.
    long contextOut() {
        return address + CONTEXT;
    }

    void setContext(long value) {
        memory.set(JAVA_LONG, CONTEXT, value);
    }

    long context() {
        return memory.get(JAVA_LONG, CONTEXT);
    }

    /// Returns the address of the first out-parameter, 8 bytes.
    long out() {
        return address + OUT;
    }

    /// Returns the address of the first out-parameter, set to 0: for functions that write 1, 4 or 8 bytes.
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

    /// Returns the address of the second out-parameter, 8 bytes.
    long secondOut() {
        return address + SECOND;
    }

    long secondOutLong() {
        return memory.get(JAVA_LONG, SECOND);
    }

    /// Returns zeroed memory for a struct.
    MemorySegment struct() {
        return memory.asSlice(STRUCT, STRUCT_BYTES).fill((byte) 0);
    }

    MemorySegment location() {
        return memory.asSlice(LOCATION, Structs.LOCATION.byteSize());
    }

    /// Returns the address of an array of pointers, one to each argument of a launch.
    long arguments() {
        return address + POINTERS;
    }

    /// Sets an argument of a launch; if it is shorter than 8 bytes, its first bytes count.
    void setArgument(int index, long bits) {
        memory.set(JAVA_LONG, VALUES + 8L * index, bits);
    }
}
