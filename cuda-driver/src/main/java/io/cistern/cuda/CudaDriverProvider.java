package io.cistern.cuda;

import java.util.Optional;

/// Finds and opens one implementation of [CudaDriver]; discovered by [java.util.ServiceLoader].
public interface CudaDriverProvider {
    /// The name by which people ask for it: `cuda` or `simulated`.
    String name();

    /// Who is taken when nobody chose: the highest that is available.
    int priority();

    /// Why this driver can't be used here, or empty if it can. Cheap, creates no context, never throws: a missing
    /// library, an old driver and a driver without devices are reasons, each with what to do about it.
    Optional<String> unavailableBecause();

    /// Why this driver can't be used although somebody set it up: for example the library that a setting names can't
    /// be loaded. This is then also what [#unavailableBecause()] says. Where nobody chose a driver by its name, no
    /// other driver takes the place of one that was set up wrongly. Empty by default; never throws.
    default Optional<String> misconfiguredBecause() {
        return Optional.empty();
    }

    /// Opens the driver.
    ///
    /// @throws CudaException if the driver refuses
    /// @throws IllegalStateException if [#unavailableBecause()] gives a reason
    CudaDriver open();
}
