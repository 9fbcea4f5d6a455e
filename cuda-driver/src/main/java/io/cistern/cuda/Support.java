package io.cistern.cuda;

/// Says whether something can be done here and, if not, why.
///
/// @param supported the answer
/// @param reason why not, and what to do about it; empty for a yes
public record Support(boolean supported, String reason) {
    private static final Support YES = new Support(true, "");

    /// Returns a yes.
    public static Support yes() {
        return YES;
    }

    /// Returns a no with its reason.
    public static Support no(String reason) {
        return new Support(false, reason);
    }
}
