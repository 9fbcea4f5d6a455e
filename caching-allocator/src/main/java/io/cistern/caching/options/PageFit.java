package io.cistern.caching.options;

import java.util.Locale;

/// How closely the pages of large blocks follow the live bytes. Smaller pages reserve less memory that no block
/// needs, but a program makes more driver calls until it reaches a steady state.
public enum PageFit {
    /// Pages of at most 1/96 of the peak of live bytes; half of that while several streams have large blocks.
    USUAL,
    /// Pages of at most 1/1024 of the peak of live bytes; half of that while several streams have large blocks.
    TIGHT;

    /// Returns the constant as a spec has it: in lower case.
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
