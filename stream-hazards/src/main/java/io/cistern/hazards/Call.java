package io.cistern.hazards;

import io.cistern.hazards.StreamHazard.Place;
import io.cistern.internal.names.ThreadNames;
import java.io.Serial;
import java.util.Arrays;
import java.util.List;

/// A call of the program. It keeps the calling thread's stack as an exception does, and resolves the frames only
/// when a hazard is found, since most calls have none.
final class Call extends Throwable {
    @Serial
    private static final long serialVersionUID = 1L;

    private static final int FRAMES = 4;

    /// Prefixes of classes that are not the program's.
    private static final List<String> INNER = List.of(
            "java.",
            "jdk.",
            "io.cistern.internal.",
            "io.cistern.cuda.",
            "io.cistern.buffers.",
            "io.cistern.caching.",
            "io.cistern.async.",
            "io.cistern.adaptors.",
            "io.cistern.hazards.",
            "io.cistern.jcuda.Cistern",
            "io.cistern.jcuda.JCuda",
            "io.cistern.javacpp.CisternMalloc",
            "io.cistern.javacpp.DevicePointer");

    private static final String OUTER = "io.cistern.";

    private final String name;
    private final String thread = ThreadNames.of(Thread.currentThread());
    private final long nanos;

    /// @param nanos the time of the call, by [System#nanoTime]
    Call(String name, long nanos) {
        super(null, null, false, true);
        this.name = name;
        this.nanos = nanos;
    }

    Call(String name) {
        this(name, System.nanoTime());
    }

    String thread() {
        return thread;
    }

    Place place(long stream, boolean isWrite, long byteSize) {
        List<StackTraceElement> stack = Arrays.stream(getStackTrace())
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
