package io.cistern.guice;

/// Ends with the application: closes the pools that the module opened, the last first, and its device memory, if
/// that was opened for the injector. Blocks that are alive stay valid until they are freed; the driver stays the
/// program's.
///
/// ```java
/// try (CisternLifecycle memory = injector.getInstance(CisternLifecycle.class)) {
///     run(injector);
/// }
/// ```
///
/// **Threads.** Any.
public interface CisternLifecycle extends AutoCloseable {
    /// Ends it. Closing twice does nothing.
    @Override
    void close();
}
