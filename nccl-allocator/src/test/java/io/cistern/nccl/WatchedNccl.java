package io.cistern.nccl;

import io.cistern.nccl.NcclApi.Handle;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

/// Any NCCL, watched: which handles are in use, and whether one is used or freed after it was freed. Calls can be
/// held where the library would be in them.
final class WatchedNccl {
    private static final Set<String> ENDS = Set.of("destroy", "abort");

    private final NcclApi nccl;
    private final NcclApi watched;
    private final Set<Handle> freed = ConcurrentHashMap.newKeySet();
    private final Map<String, Held> held = new ConcurrentHashMap<>();
    private final Set<String> failing = ConcurrentHashMap.newKeySet();
    private final List<String> ends = new CopyOnWriteArrayList<>();
    private final List<String> misuses = new CopyOnWriteArrayList<>();
    private volatile CountDownLatch releasedByAbort = new CountDownLatch(0);

    WatchedNccl(NcclApi nccl) {
        this.nccl = nccl;
        watched = (NcclApi) Proxy.newProxyInstance(
                NcclApi.class.getClassLoader(), new Class<?>[] {NcclApi.class}, (_, method, arguments) -> {
                    if (arguments != null && arguments[0] instanceof Handle handle) {
                        return used(handle, method, arguments);
                    }
                    return invoke(nccl, method, arguments);
                });
    }

    /// An NCCL for which something happens before each call of a function.
    static NcclApi before(NcclApi nccl, String function, Runnable event) {
        return (NcclApi) Proxy.newProxyInstance(
                NcclApi.class.getClassLoader(), new Class<?>[] {NcclApi.class}, (_, method, arguments) -> {
                    if (method.getName().equals(function)) {
                        event.run();
                    }
                    return invoke(nccl, method, arguments);
                });
    }

    NcclApi api() {
        return watched;
    }

    /// The calls that freed handles, in their order.
    List<String> ends() {
        return ends;
    }

    List<String> misuses() {
        return misuses;
    }

    /// Misuses so far are none.
    void forgive() {
        misuses.clear();
    }

    /// Holds the next call of a function until it is released.
    Held hold(String function) {
        Held next = new Held();
        held.put(function, next);
        return next;
    }

    /// An abort lets a held call go on.
    void releasedByAbort(Held call) {
        releasedByAbort = call.released;
    }

    /// Lets a function fail after its work from now on.
    void fail(String function) {
        failing.add(function);
    }

    private Object used(Handle handle, Method method, Object... arguments) throws Throwable {
        String name = method.getName();
        check(handle, name);
        if (ENDS.contains(name)) {
            ends.add(name);
            freed.add(handle);
        }
        Held hold = held.remove(name);
        if (hold != null) {
            hold.pass();
        }
        if (name.equals("abort")) {
            releasedByAbort.countDown();
        }
        if (!ENDS.contains(name)) {
            check(handle, name);
        }
        Object result = freed.contains(handle) && !ENDS.contains(name) ? null : invoke(nccl, method, arguments);
        if (failing.contains(name)) {
            throw SimulatedNccl.refused(name, NcclResult.SYSTEM_ERROR, handle.toString(), "");
        }
        return result;
    }

    private void check(Handle handle, String call) {
        if (freed.contains(handle)) {
            misuses.add(call + " of a freed handle");
        }
    }

    private static Object invoke(NcclApi nccl, Method method, Object... arguments) throws Throwable {
        try {
            return method.invoke(nccl, arguments);
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
    }

    /// A call that is in the library.
    static final class Held {
        private final CountDownLatch entered = new CountDownLatch(1);
        private final CountDownLatch released = new CountDownLatch(1);

        private void pass() throws InterruptedException {
            entered.countDown();
            released.await();
        }

        void awaitEntered() throws InterruptedException {
            entered.await();
        }

        void release() {
            released.countDown();
        }
    }
}
