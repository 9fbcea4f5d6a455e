package io.cistern.cuda;

/// Whether something can be done here and, if not, why.
///
/// @param supported the answer
/// @param reason why not, and what to do about it; empty for a yes
public record Support(boolean supported, String reason) {
    private static final Support YES = new Support(true, "");

    /// A yes.
    public static Support yes() {
        return YES;
    }

    /// A no with its reason.
    public static Support no(String reason) {
        return new Support(false, reason);
    }
}
