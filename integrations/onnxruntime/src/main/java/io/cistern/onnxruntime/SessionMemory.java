package io.cistern.onnxruntime;

import io.cistern.CudaStream;
import io.cistern.MemoryLimit;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Holds the stream, limit and figures of one session. [OnnxMemory#configure] creates it.
///
/// With [SessionStreams#ONE_OF_SESSION], the stream of a request identifies the session. Allocations
/// that name no stream, such as those of weights, and all allocations of
/// [SessionStreams#ONE_FOR_EACH_REQUEST], belong to the session whose [#call] the thread is running,
/// else to no session:
///
/// ```java
/// OrtSession encoder = sessionMemory.call(() -> environment.createSession("encoder.onnx", options));
/// ```
///
/// **Threads.** Any thread may call any method at any time.
public final class SessionMemory implements AutoCloseable {
    /// The session whose [#call] the thread runs.
    static final ScopedValue<SessionMemory> CURRENT = ScopedValue.newInstance();

    private final OnnxMemory owner;
    private final SessionSettings settings;
    private final @Nullable CudaStream stream;
    private final Counters counters = new Counters();
    private volatile boolean closed;

    /// @param stream the stream of [SessionStreams#ONE_OF_SESSION]; null for other settings
    SessionMemory(OnnxMemory owner, SessionSettings settings, @Nullable CudaStream stream) {
        this.owner = owner;
        this.settings = settings;
        this.stream = stream;
    }

    /// Returns the name from the settings.
    public String name() {
        return settings.name();
    }

    /// Returns the stream on which the session works.
    ///
    /// @return empty for [SessionStreams#ONE_FOR_EACH_REQUEST]
    public Optional<CudaStream> stream() {
        return Optional.ofNullable(stream);
    }

    /// Returns the limit from the settings; empty if there is none.
    public Optional<MemoryLimit> limit() {
        return settings.limit();
    }

    /// Returns the figures of the session's blocks.
    public SessionFigures figures() {
        return counters.figures();
    }

    /// Runs code, and counts its allocations towards this session unless their stream identifies a
    /// session. Use it to create the session, so that its weights are counted, and for requests of
    /// [SessionStreams#ONE_FOR_EACH_REQUEST].
    ///
    /// @return the code's result
    /// @throws X if the code throws it
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<R, X> code) throws X {
        return ScopedValue.where(CURRENT, this).call(code);
    }

    /// Gives the session's stream back, for later sessions. Call this method after you have closed the
    /// session. If the session is still open, it keeps its stream, limit and figures until its last
    /// counted block is freed. After that, a later session may get the stream; the blocks of both
    /// sessions then count towards the later one. Closing twice does nothing.
    @Override
    public void close() {
        closed = true;
        owner.close(this);
    }

    /// Returns whether the session, and with it ONNX Runtime's streams for its requests, may be gone.
    boolean isClosed() {
        return closed;
    }

    SessionSettings settings() {
        return settings;
    }

    Counters counters() {
        return counters;
    }

    @Override
    public String toString() {
        return "memory of session " + name() + " on " + owner;
    }
}
