package io.cistern.hazards;

import io.cistern.cuda.CisternException;

/// Reports that a call would use memory without the necessary stream order. The call was not made.
public final class StreamHazardException extends CisternException {
    private static final long serialVersionUID = 1;

    private final transient StreamHazard hazard;

    StreamHazardException(StreamHazard hazard) {
        super(hazard.toString());
        this.hazard = hazard;
    }

    /// Returns the hazard.
    public StreamHazard hazard() {
        return hazard;
    }
}
