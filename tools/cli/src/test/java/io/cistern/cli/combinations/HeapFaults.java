package io.cistern.cli.combinations;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCapabilities;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.lang.reflect.RecordComponent;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/// A driver around another one, of whose calls some find the Java heap full before they do anything: those that obtain
/// something, and those that wait, which leave virtual threads and need objects for that. The real driver's binding
/// makes no garbage in the others. Only calls that a thread makes within [#during] fail.
final class HeapFaults implements CudaDriver {
    private static final Pattern FAILING = Pattern.compile("(create|allocate|reserve|synchronize).*");

    private final CudaDriver driver;
    private final Facets facets;
    private final ThreadLocal<BooleanSupplier> fails = new ThreadLocal<>();
    private final LongAdder failed = new LongAdder();

    HeapFaults(CudaDriver driver) {
        this.driver = driver;
        this.facets = around(driver.facets());
    }

    /// Makes a call during which driver calls of this thread fail when asked.
    <T> T during(BooleanSupplier whether, Supplier<T> call) {
        fails.set(whether);
        try {
            return call.get();
        } finally {
            fails.remove();
        }
    }

    long failedCalls() {
        return failed.sum();
    }

    private Facets around(Facets all) {
        try {
            RecordComponent[] components = Facets.class.getRecordComponents();
            Object[] wrapped = new Object[components.length];
            Class<?>[] types = new Class<?>[components.length];
            for (int i = 0; i < components.length; i++) {
                types[i] = components[i].getType();
                wrapped[i] = around(types[i], components[i].getAccessor().invoke(all));
            }
            Constructor<Facets> constructor = Facets.class.getDeclaredConstructor(types);
            return constructor.newInstance(wrapped);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private Object around(Class<?> facet, Object target) {
        return Proxy.newProxyInstance(
                facet.getClassLoader(),
                new Class<?>[] {facet},
                (_, method, arguments) -> call(target, method, arguments));
    }

    private Object call(Object target, Method method, Object[] arguments) throws Throwable {
        BooleanSupplier whether = fails.get();
        if (whether != null && FAILING.matcher(method.getName()).matches() && whether.getAsBoolean()) {
            failed.increment();
            throw new OutOfMemoryError("asked for, before " + method.getName());
        }
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
    }

    @Override
    public boolean simulated() {
        return driver.simulated();
    }

    @Override
    public String description() {
        return driver.description();
    }

    @Override
    public int version() {
        return driver.version();
    }

    @Override
    public DriverCapabilities capabilities() {
        return driver.capabilities();
    }

    @Override
    public Facets facets() {
        return facets;
    }

    @Override
    public CudaDriver original() {
        return driver.original();
    }

    @Override
    public CallCounts calls() {
        return driver.calls();
    }

    @Override
    public long nanoTime() {
        return driver.nanoTime();
    }

    @Override
    public void close() {
        driver.close();
    }
}
