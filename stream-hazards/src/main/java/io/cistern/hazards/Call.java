package io.cistern.hazards;

import io.cistern.hazards.StreamHazard.Place;
import java.util.Arrays;
import java.util.List;

/// A call of the program. Its frames are named only once a hazard is found: most calls are of none.
///
/// @param trace holds the calling thread's frames
record Call(String name, long stream, boolean isWrite, long byteSize, String thread, long nanos, Throwable trace) {
    private static final int FRAMES = 4;

    /// Where no program's code stands.
    private static final List<String> INNER = List.of(
            "java.",
            "jdk.",
            "io.cistern.internal.",
            "io.cistern.cuda.",
            "io.cistern.buffers.",
            "io.cistern.caching.",
            "io.cistern.async.",
            "io.cistern.adaptors.",
            "io.cistern.hazards.");

    private static final String OUTER = "io.cistern.";

    Call(String name, long stream, boolean isWrite, long byteSize, Throwable trace) {
        this(name, stream, isWrite, byteSize, Thread.currentThread().getName(), System.nanoTime(), trace);
    }

    Place place() {
        List<StackTraceElement> stack = Arrays.stream(trace.getStackTrace())
                .filter(frame -> isProgram(frame.getClassName()))
                .limit(FRAMES)
                .toList();
        return new Place(name, stream, isWrite, byteSize, thread, nanos, stack);
    }

    private static boolean isProgram(String name) {
        boolean isInner = INNER.stream().anyMatch(name::startsWith);
        return !isInner && !(name.startsWith(OUTER) && name.lastIndexOf('.') == OUTER.length() - 1);
    }
}
