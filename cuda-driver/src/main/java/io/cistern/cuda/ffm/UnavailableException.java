package io.cistern.cuda.ffm;

import java.io.Serial;

/// Thrown when the driver can't be used here. The message is for users, so there is no stack trace.
final class UnavailableException extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    private final String reason;
    private final boolean misconfigured;

    UnavailableException(String reason) {
        this(reason, false);
    }

    private UnavailableException(String reason, boolean misconfigured) {
        super(reason, null, false, false);
        this.reason = reason;
        this.misconfigured = misconfigured;
    }

    static UnavailableException misconfigured(String reason) {
        return new UnavailableException(reason, true);
    }

    String reason() {
        return reason;
    }

    boolean isMisconfigured() {
        return misconfigured;
    }
}
