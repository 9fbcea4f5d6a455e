package io.cistern.handles;

import java.lang.ref.WeakReference;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The handles of one thread, one slot a device.
///
/// @param <H> the handle
final class ThreadHandles<H> {
    final boolean virtual;
    final String name;

    /// Weak, so that a thread that nobody keeps counts as ended.
    private final WeakReference<Thread> thread;

    private final List<ThreadSlot<H>> slots;

    ThreadHandles(int deviceCount) {
        Thread current = Thread.currentThread();
        thread = new WeakReference<>(current);
        virtual = current.isVirtual();
        name = current.getName().isEmpty() ? "thread " + current.threadId() : current.getName();
        slots = IntStream.range(0, deviceCount)
                .mapToObj(device -> new ThreadSlot<>(device, this))
                .toList();
    }

    /// @throws IndexOutOfBoundsException if there is no such device
    ThreadSlot<H> slot(int device) {
        return slots.get(device);
    }

    List<ThreadSlot<H>> slots() {
        return slots;
    }

    boolean holdsAny() {
        for (ThreadSlot<H> slot : slots) {
            if (slot.held() != null) {
                return true;
            }
        }
        return false;
    }

    boolean isCurrentThread() {
        return thread.refersTo(Thread.currentThread());
    }

    /// Whether the thread has ended. Seeing that orders all that it wrote before what the caller does next.
    boolean isEnded() {
        @Nullable Thread alive = thread.get();
        return alive == null || !alive.isAlive();
    }
}
