package io.cistern.cli.trace;

import io.cistern.cli.generated.GeneratedTrace;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/// The names of traces that shells complete.
public final class TraceCandidates {
    private TraceCandidates() {}

    /// Traces that are bundled or generated. If no name fits, the shell completes files.
    public static final class All implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            List<String> names = new ArrayList<>(BundledTraces.NAMES);
            names.addAll(GeneratedTrace.labels());
            return names.iterator();
        }
    }

    /// Traces that are generated.
    static final class Generated implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return GeneratedTrace.labels().iterator();
        }
    }
}
