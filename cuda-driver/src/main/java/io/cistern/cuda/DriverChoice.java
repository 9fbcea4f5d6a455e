package io.cistern.cuda;

/// The driver that a program gets if its code names none.
///
/// @param provider opens the driver
/// @param asked true if the setting `cistern.driver` names the driver, false if `auto` found it
/// @param reason says why this one was chosen, for people: the setting's source, or why those of a higher
///     priority can't be used; empty if it has the highest priority
public record DriverChoice(CudaDriverProvider provider, boolean asked, String reason) {}
