package io.cistern.context;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.ScopeCarrier;
import io.micrometer.context.ThreadLocalAccessor;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Shows a thread's scopes to Micrometer's context propagation as one thread-local value, so that whoever captures a
/// context snapshot carries them.
///
/// With this module on the path, the scopes of [DeviceMemory#system()] are carried; it is never opened for that.
/// Other device memory is registered by the program:
///
/// ```java
/// ContextRegistry.getInstance().registerThreadLocalAccessor(new ScopeAccessor("my-memory", memory));
/// ```
///
/// **Threads.** Any thread may call any method at any time; each acts on the thread that calls it.
public final class ScopeAccessor implements ThreadLocalAccessor<ScopeCarrier> {
    /// The key of the scopes in the process's own device memory.
    public static final String SYSTEM_KEY = "io.cistern.scopes";

    private final String key;
    private final Supplier<Optional<DeviceMemory>> memory;

    /// For the process's own device memory; what [java.util.ServiceLoader] calls.
    public ScopeAccessor() {
        this.key = SYSTEM_KEY;
        this.memory = ModuleSupport::systemIfOpen;
    }

    /// For device memory that the program opened.
    ///
    /// @param key a key that no other accessor in the registry has
    public ScopeAccessor(String key, DeviceMemory memory) {
        this.key = key;
        this.memory = () -> Optional.of(memory);
    }

    @Override
    public Object key() {
        return key;
    }

    /// The calling thread's scopes, or null outside any.
    @Override
    @SuppressWarnings("exports") // nobody needs JSpecify to run
    public @Nullable ScopeCarrier getValue() {
        return memory.get()
                .map(ScopeCarrier::capture)
                .filter(carrier -> !carrier.isEmpty())
                .orElse(null);
    }

    /// Puts the calling thread into scopes, in place of those that it is in.
    @Override
    public void setValue(ScopeCarrier scopes) {
        scopes.restore();
    }

    /// Takes the calling thread out of all scopes.
    @Override
    public void setValue() {
        memory.get().ifPresent(open -> ScopeCarrier.none(open).restore());
    }
}
