package io.cistern.handles.cublas;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.handles.internal.NativeCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;

/// Asks a library for its version and for the names of statuses.
final class StatusTexts {
    private static final int PATCH = 2;

    private final String library;
    private final MemorySegment property;
    private final MemorySegment name;

    /// @param prefix the prefix of its functions: `cublas` or `cublasLt`
    StatusTexts(SharedLibrary library, String prefix) {
        this.library = library.name();
        property = library.require(prefix + "GetProperty");
        name = library.require(prefix + "GetStatusName");
    }

    /// Throws an exception if a call did not succeed.
    ///
    /// @param arguments the call's arguments, for people
    void check(int status, String call, Supplier<String> arguments) {
        if (status != 0) {
            throw failed(status, call, arguments.get());
        }
    }

    CublasException failed(int status, String call, String arguments) {
        return new CublasException(call, status, NativeCalls.text(name, status), arguments);
    }

    /// Returns the library and its version, for people.
    String description() {
        StringBuilder text = new StringBuilder(library).append(", version ");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_INT);
            for (int part = 0; part <= PATCH; part++) {
                int status = NativeCalls.call(property, part, out.address());
                text.append(part == 0 ? "" : ".").append(status == 0 ? out.get(JAVA_INT, 0) : "?");
            }
        }
        return text.toString();
    }
}
