package io.cistern.cli.trace;

import java.util.Iterator;

/// The trace names that shells complete. If none fits, the shell completes files.
public final class TraceCandidates implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
        return BundledTraces.NAMES.iterator();
    }
}
