package io.cistern.micrometer;

import io.cistern.Registration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Holds the bindings of one device memory, and closes those that are open when it closes.
///
/// **Threads.** Any.
final class Bindings implements AutoCloseable {
    private final Set<Registration> open = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    Registration add(Registration bound) {
        open.add(bound);
        if (closed) {
            remove(bound);
        }
        return () -> remove(bound);
    }

    private void remove(Registration bound) {
        if (open.remove(bound)) {
            bound.close();
        }
    }

    @Override
    public void close() {
        closed = true;
        open.forEach(this::remove);
    }
}
