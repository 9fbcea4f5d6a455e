package io.cistern.guice;

/// Closes everything that the module opened: first the pools, the last opened first, and then the device
/// memory, if the module opened it for the injector. Live blocks stay valid until they are freed. The
/// program itself closes the driver.
///
/// ```java
/// try (CisternLifecycle memory = injector.getInstance(CisternLifecycle.class)) {
///     run(injector);
/// }
/// ```
///
/// **Threads.** Any thread may call it at any time.
public interface CisternLifecycle extends AutoCloseable {
    /// Closes the pools and the device memory. Closing twice does nothing.
    @Override
    void close();
}
