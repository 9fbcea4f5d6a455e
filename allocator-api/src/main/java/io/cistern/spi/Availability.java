package io.cistern.spi;

/// Says whether a provider can run here or an ability can be used, and if not, why.
///
/// @param available whether the answer is yes
/// @param reason why the answer is no, and what to do about it; empty if it is yes
public record Availability(boolean available, String reason) {
    private static final Availability YES = new Availability(true, "");

    /// Returns a positive answer.
    public static Availability yes() {
        return YES;
    }

    /// Returns a negative answer with the reason.
    ///
    /// @param reason why not, and what to do about it
    public static Availability no(String reason) {
        return new Availability(false, reason);
    }
}
