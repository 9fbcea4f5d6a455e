package io.cistern.cuda;

/// Says whether something can be done here and, if not, why.
///
/// @param supported whether it can be done
/// @param reason why it can't be done, and what to do about that; empty if it can
public record Support(boolean supported, String reason) {
    private static final Support YES = new Support(true, "");

    /// Returns the result for something that can be done.
    public static Support yes() {
        return YES;
    }

    /// Returns the result for something that can't be done, with the reason.
    public static Support no(String reason) {
        return new Support(false, reason);
    }
}
