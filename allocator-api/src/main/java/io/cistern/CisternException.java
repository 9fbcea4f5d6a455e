package io.cistern;

import java.io.Serial;

/// Base of the errors that Cistern itself reports. A misuse of a call is a standard Java exception instead, and a
/// driver call that failed is an [io.cistern.cuda.CudaException].
public sealed class CisternException extends RuntimeException
        permits ConfigurationException,
                DeviceOutOfMemoryException,
                UnknownAddressException,
                UnusableStreamException,
                MemoryMisuseException,
                MemoryAsleepException,
                SharingException,
                AllocatorContractException {
    @Serial
    private static final long serialVersionUID = 1L;

    CisternException(String message) {
        super(message);
    }

    CisternException(String message, Throwable cause) {
        super(message, cause);
    }
}
