package io.cistern.cuda;

/// The driver that a program gets when its code names none.
///
/// @param provider opens it
/// @param asked whether the setting `cistern.driver` names it, rather than `auto` having found it
/// @param reason why this one, for people: who set it, or why those of a higher priority can't be used; empty if it
///     is the one of the highest priority
public record DriverChoice(CudaDriverProvider provider, boolean asked, String reason) {}
