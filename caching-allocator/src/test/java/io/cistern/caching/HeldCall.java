package io.cistern.caching;

import io.cistern.cuda.CudaDriver;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/// Has one call of a driver stand still until it is let go: the first of a name once that is asked for. All other
/// calls go on.
final class HeldCall {
    private final String name;
    private final AtomicBoolean wanted = new AtomicBoolean();
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch letGo = new CountDownLatch(1);

    /// @param name facet and method, as `VirtualMemory.map`
    HeldCall(String name) {
        this.name = name;
    }

    CudaDriver around(CudaDriver driver) {
        return around(CudaDriver.class, driver);
    }

    private <T> T around(Class<T> type, Object target) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (_, method, arguments) -> call(target, method, arguments)));
    }

    private Object call(Object target, Method method, Object[] arguments) throws Throwable {
        String called = method.getDeclaringClass().getSimpleName() + "." + method.getName();
        if (called.equals(name) && wanted.compareAndSet(true, false)) {
            begun.countDown();
            letGo.await();
        }
        try {
            Object result = method.invoke(target, arguments);
            return isFacet(method) ? around(method.getReturnType(), result) : result;
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
    }

    private static boolean isFacet(Method method) {
        return method.getDeclaringClass() == CudaDriver.class
                && method.getReturnType().isInterface()
                && method.getReturnType().getPackage() == CudaDriver.class.getPackage();
    }

    /// The next one.
    void hold() {
        wanted.set(true);
    }

    /// Waits until somebody stands in it.
    ///
    /// @return false if nobody does for long
    boolean awaitBegin() throws InterruptedException {
        return begun.await(20, TimeUnit.SECONDS);
    }

    void letGo() {
        letGo.countDown();
    }
}
