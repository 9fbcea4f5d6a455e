package io.cistern.cli.common;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Says that the command line asks for something impossible here. The message is one line for standard error.
public final class UsageException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    public UsageException(String message) {
        super(message.lines().findFirst().orElse(""));
    }
}
