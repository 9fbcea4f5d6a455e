package io.cistern.spi;

/// Whether a provider can run here and, if not, why.
///
/// @param available the answer
/// @param reason why not, and what to do about it; empty for a yes
public record Availability(boolean available, String reason) {
    private static final Availability YES = new Availability(true, "");

    /// Returns the answer that it can run.
    public static Availability yes() {
        return YES;
    }

    /// Returns the answer that it can't.
    ///
    /// @param reason why not, and what to do about it
    public static Availability no(String reason) {
        return new Availability(false, reason);
    }
}
