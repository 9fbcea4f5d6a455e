package io.cistern.caching.internal.page;

import java.util.Arrays;

/// Handles that the driver would not take back. There is always room for more, so keeping one needs no Java heap.
///
/// Guarded by its owner.
final class RefusedHandles {
    /// More than the number of threads that release at one time.
    private static final int ROOM = 64;

    private final Release release;
    private long[] handles = new long[2 * ROOM];
    private long[] byteSizes = new long[2 * ROOM];
    private int count;

    RefusedHandles(Release release) {
        this.release = release;
    }

    interface Release {
        /// Releases a handle; returns whether the driver took it.
        boolean isDone(long handle, long byteSize);
    }

    void keep(long handle, long byteSize) {
        if (count == handles.length) {
            grow();
        }
        handles[count] = handle;
        byteSizes[count++] = byteSize;
        if (count + ROOM > handles.length) {
            try {
                grow();
            } catch (OutOfMemoryError ofTheHeap) {
                // This handle is kept, and there is room for the next ones.
            }
        }
    }

    private void grow() {
        long[] more = Arrays.copyOf(handles, 2 * handles.length);
        byteSizes = Arrays.copyOf(byteSizes, more.length);
        handles = more;
    }

    /// Tries again to release all handles.
    void retry() {
        for (int i = count - 1; i >= 0; i--) {
            if (release.isDone(handles[i], byteSizes[i])) {
                count--;
                handles[i] = handles[count];
                byteSizes[i] = byteSizes[count];
            }
        }
    }

    long byteSize() {
        long sum = 0;
        for (int i = 0; i < count; i++) {
            sum += byteSizes[i];
        }
        return sum;
    }
}
