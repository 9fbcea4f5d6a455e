package io.cistern.nccl;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

/// The simulated NCCL, some of whose calls are refused, and communicators that are in a call.
public final class RefusingNccl {
    private final DeviceMemory memory;
    private final NcclApi api;
    private final Set<String> refused = ConcurrentHashMap.newKeySet();
    private volatile boolean registersNothing;

    public RefusingNccl(DeviceMemory memory) {
        this.memory = memory;
        NcclApi simulated = NcclApis.of(memory.driver());
        api = (NcclApi) Proxy.newProxyInstance(
                NcclApi.class.getClassLoader(), new Class<?>[] {NcclApi.class}, (_, method, arguments) -> {
                    if (refused.contains(method.getName())) {
                        throw new NcclException(method.getName(), 1, "", "refused");
                    }
                    if (registersNothing && method.getName().equals("register")) {
                        return 0L;
                    }
                    try {
                        return method.invoke(simulated, arguments);
                    } catch (InvocationTargetException failure) {
                        throw failure.getCause();
                    }
                });
    }

    /// Refuses the calls of a function from now on, or of none.
    public void refuse(String... functions) {
        refused.clear();
        refused.addAll(Set.of(functions));
    }

    /// Whether registrations come to nothing, as those that NCCL has no use for.
    public void registersNothing(boolean nothing) {
        registersNothing = nothing;
    }

    public Communicator rank() {
        return new Nccl(api).initAll(0).getFirst();
    }

    public MemoryPool pool() {
        return MemoryPool.builder(memory)
                .spec("caching:splits=false")
                .source(new NcclSource(api, memory.driver()))
                .open();
    }

    /// Does something while a communicator is in a call of another thread.
    public static void besideCall(Communicator rank, Runnable action) throws InterruptedException {
        CountDownLatch inCall = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        Thread caller = Thread.ofPlatform().daemon().start(() -> {
            rank.enter();
            inCall.countDown();
            try {
                done.await();
            } catch (InterruptedException ends) {
                Thread.currentThread().interrupt();
            }
            rank.leave();
        });
        inCall.await();
        try {
            action.run();
        } finally {
            done.countDown();
            caller.join();
        }
    }
}
