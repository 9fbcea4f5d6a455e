package io.cistern.onnxruntime;

import io.cistern.CudaStream;
import io.cistern.MemoryLimit;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The memory of one session: its stream, its limit, and figures. [OnnxMemory#configure] makes it.
///
/// What a session of [SessionStreams#ONE_OF_SESSION] allocates for requests is found by its stream.
/// Allocations that name no stream, such as those of weights, and all of
/// [SessionStreams#ONE_FOR_EACH_REQUEST], belong to the session whose [#call] the thread is in, else to none:
///
/// ```java
/// OrtSession encoder = sessionMemory.call(() -> environment.createSession("encoder.onnx", options));
/// ```
///
/// **Threads.** Any thread may call any method at any time.
public final class SessionMemory implements AutoCloseable {
    /// The session whose region the thread is in.
    static final ScopedValue<SessionMemory> CURRENT = ScopedValue.newInstance();

    private final OnnxMemory owner;
    private final SessionSettings settings;
    private final @Nullable CudaStream stream;
    private final Counters counters = new Counters();

    /// @param stream of [SessionStreams#ONE_OF_SESSION]
    SessionMemory(OnnxMemory owner, SessionSettings settings, @Nullable CudaStream stream) {
        this.owner = owner;
        this.settings = settings;
        this.stream = stream;
    }

    /// Returns the name from the settings.
    public String name() {
        return settings.name();
    }

    /// Returns the stream that the session works on.
    ///
    /// @return empty for [SessionStreams#ONE_FOR_EACH_REQUEST]
    public Optional<CudaStream> stream() {
        return Optional.ofNullable(stream);
    }

    /// Returns the limit from the settings.
    public Optional<MemoryLimit> limit() {
        return settings.limit();
    }

    /// Returns the figures of the session's blocks.
    public SessionFigures figures() {
        return counters.figures();
    }

    /// Runs code whose allocations belong to this session where their stream does not tell: making the
    /// session, so that its weights are counted, and requests of [SessionStreams#ONE_FOR_EACH_REQUEST].
    ///
    /// @return what the code returns
    /// @throws X if the code does
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<R, X> code) throws X {
        return ScopedValue.where(CURRENT, this).call(code);
    }

    /// Ends the configuration; best after the session. A session that lives on keeps its stream, limit and
    /// figures to itself as long as blocks are counted to it; then it shares them with the next one. Closing
    /// twice does nothing.
    @Override
    public void close() {
        owner.close(this);
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
