package io.cistern.cuda;

import java.util.Optional;

/// Finds and opens one implementation of [CudaDriver]; discovered by [java.util.ServiceLoader].
public interface CudaDriverProvider {
    /// Returns the name of this driver in the setting `cistern.driver`, for example `cuda` or `simulated`.
    String name();

    /// Returns the priority. If the setting `cistern.driver` names no driver, the available one with the
    /// highest priority is used.
    int priority();

    /// Returns why this driver can't be used here, or empty if it can. Possible reasons are a missing library,
    /// an old driver, and a driver without devices; the text also says what to do about it. The call is cheap,
    /// creates no context and never throws.
    Optional<String> unavailableBecause();

    /// Returns why this driver can't be used although it was configured: for example, the library that a
    /// setting names can't be loaded. [#unavailableBecause()] then returns the same reason, and
    /// [CudaDrivers#choose()] fails instead of choosing a driver of lower priority, unless the setting
    /// `cistern.driver` names one. Empty by default; never throws.
    default Optional<String> misconfiguredBecause() {
        return Optional.empty();
    }

    /// Opens the driver.
    ///
    /// @throws CudaException if the driver can't be initialised
    /// @throws IllegalStateException if [#unavailableBecause()] gives a reason
    CudaDriver open();
}
