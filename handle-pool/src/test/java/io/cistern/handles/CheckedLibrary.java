package io.cistern.handles;

import io.cistern.cuda.CudaDriver;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// A library whose handles notice what no library allows: two threads in one handle, a handle that was
/// destroyed, and a context that is not the device's.
final class CheckedLibrary implements HandleLibrary<CheckedLibrary.Handle> {
    final AtomicInteger created = new AtomicInteger();
    final AtomicInteger destroyed = new AtomicInteger();
    final AtomicInteger streamsSet = new AtomicInteger();
    final AtomicInteger refusals = new AtomicInteger();
    private final Queue<String> wrong = new ConcurrentLinkedQueue<>();
    private final CudaDriver driver;
    volatile long workspaceBytes;
    volatile Runnable onCreate = () -> {};
    volatile Runnable onDestroy = () -> {};

    CheckedLibrary(CudaDriver driver) {
        this.driver = driver;
    }

    /// What was wrong so far.
    List<String> wrong() {
        return List.copyOf(wrong);
    }

    int alive() {
        return created.get() - destroyed.get();
    }

    final class Handle {
        final int device;
        private final AtomicReference<@Nullable Thread> user = new AtomicReference<>();
        private volatile boolean gone;
        volatile long stream;
        volatile long workspace;

        private Handle(int device) {
            this.device = device;
        }

        /// A call of the library.
        void use(long expectedStream) {
            enter("use");
            if (stream != expectedStream) {
                wrong.add("the stream is " + stream + " instead of " + expectedStream);
            }
            Thread.onSpinWait();
            leave();
        }

        private void enter(String call) {
            if (!user.compareAndSet(null, Thread.currentThread())) {
                wrong.add(call + " while another thread is inside");
            }
            if (gone) {
                wrong.add(call + " after the end");
            }
        }

        private void leave() {
            user.set(null);
        }
    }

    @Override
    public String name() {
        return "checked";
    }

    @Override
    public Handle create(int device) {
        requireContext(device);
        if (refusals.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
            throw new IllegalStateException("NOT_INITIALIZED");
        }
        onCreate.run();
        created.incrementAndGet();
        return new Handle(device);
    }

    @Override
    public void destroy(Handle handle, int device) {
        requireContext(device);
        handle.enter("destroy");
        if (driver.graphs().isSheltered(device)) {
            wrong.add("destroy beside a capture, which waits for all work");
        }
        handle.gone = true;
        destroyed.incrementAndGet();
        onDestroy.run();
    }

    @Override
    public void setStream(Handle handle, long stream) {
        requireContext(handle.device);
        handle.enter("setStream");
        handle.stream = stream;
        handle.workspace = 0;
        streamsSet.incrementAndGet();
        handle.leave();
    }

    @Override
    public long workspaceBytes(int device) {
        if (workspaceBytes < 0) {
            throw new IllegalStateException("workspaceBytes");
        }
        return workspaceBytes;
    }

    @Override
    public void setWorkspace(Handle handle, long address, long byteSize) {
        requireContext(handle.device);
        handle.enter("setWorkspace");
        if (address == 0 || byteSize != workspaceBytes) {
            wrong.add("a workspace of " + byteSize + " bytes at " + address);
        }
        handle.workspace = address;
        handle.leave();
    }

    private void requireContext(int device) {
        if (driver.devices().currentDevice() != device) {
            wrong.add("the context of device " + device + " is not current");
        }
    }
}
