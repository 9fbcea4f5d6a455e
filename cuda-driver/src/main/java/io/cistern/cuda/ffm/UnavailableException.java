package io.cistern.cuda.ffm;

import java.io.Serial;

/// Why the driver can't be used here, in words for people. It tells a fact, so it has no stack trace.
final class UnavailableException extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    private final String reason;

    UnavailableException(String reason) {
        super(reason, null, false, false);
        this.reason = reason;
    }

    String reason() {
        return reason;
    }
}
