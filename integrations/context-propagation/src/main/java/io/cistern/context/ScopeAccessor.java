package io.cistern.context;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.ScopeCarrier;
import io.micrometer.context.ThreadLocalAccessor;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Exposes a thread's scopes to Micrometer's context propagation as one thread-local value, so that
/// every context snapshot carries them.
///
/// With this module on the class path or module path, snapshots carry the scopes of
/// [DeviceMemory#system()]. Taking a snapshot never opens that device memory. For other device memory, the
/// program must register an accessor itself:
///
/// ```java
/// ContextRegistry.getInstance().registerThreadLocalAccessor(new ScopeAccessor("my-memory", memory));
/// ```
///
/// **Threads.** Any thread may call any method at any time; each method acts on the calling thread.
public final class ScopeAccessor implements ThreadLocalAccessor<ScopeCarrier> {
    /// The key of the scopes in the process's own device memory.
    public static final String SYSTEM_KEY = "io.cistern.scopes";

    private final String key;
    private final Supplier<Optional<DeviceMemory>> memory;

    /// Creates the accessor of the process's own device memory. [java.util.ServiceLoader] calls this.
    public ScopeAccessor() {
        this.key = SYSTEM_KEY;
        this.memory = ModuleSupport::systemIfOpen;
    }

    /// Creates an accessor of device memory that the program opened.
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

    /// Returns the calling thread's scopes, or null if it is in none.
    @Override
    @SuppressWarnings("exports") // JSpecify is not needed at run time
    public @Nullable ScopeCarrier getValue() {
        return memory.get()
                .map(ScopeCarrier::capture)
                .filter(carrier -> !carrier.isEmpty())
                .orElse(null);
    }

    /// Replaces the calling thread's scopes with the given ones.
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
