package io.cistern.cuda;

/// The driver that [CudaDrivers#choose()] chose.
///
/// @param provider opens the driver
/// @param asked true if the setting `cistern.driver` names the driver, false if it was found automatically
/// @param reason a human-readable reason for the choice: the source of the setting, or why the drivers of
///     higher priority can't be used; empty if no setting names a driver and this one has the highest priority
public record DriverChoice(CudaDriverProvider provider, boolean asked, String reason) {}
