package io.cistern.onnxruntime;

import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import io.cistern.MemoryLimit;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Configures the memory of one session.
///
/// ```java
/// SessionSettings.named("encoder").limit(MemoryLimit.of("encoder", 2L << 30))
/// ```
///
/// **Threads.** Immutable; any thread may use it at any time.
public final class SessionSettings {
    private final String name;
    private final SessionStreams streams;
    private final @Nullable MemoryLimit limit;
    private final @Nullable OrtCUDAProviderOptions provider;

    private SessionSettings(
            String name,
            SessionStreams streams,
            @Nullable MemoryLimit limit,
            @Nullable OrtCUDAProviderOptions provider) {
        this.name = name;
        this.streams = streams;
        this.limit = limit;
        this.provider = provider;
    }

    /// Returns settings for a session of the given name, on one stream, without a limit.
    ///
    /// @param name a name for figures and messages; need not be unique
    public static SessionSettings named(String name) {
        return new SessionSettings(name, SessionStreams.ONE_OF_SESSION, null, null);
    }

    /// Returns these settings with other streams.
    public SessionSettings streams(SessionStreams streams) {
        return new SessionSettings(name, streams, limit, provider);
    }

    /// Returns these settings with a limit on the session's live bytes. ONNX Runtime throws when the
    /// limit is reached. With [SessionStreams#ONE_FOR_EACH_REQUEST] the limit applies only within
    /// [SessionMemory#call]. This limit replaces that of the scope in which a request runs. To apply
    /// both, make this limit a [child][MemoryLimit#child] of the scope's limit.
    public SessionSettings limit(MemoryLimit limit) {
        return new SessionSettings(name, streams, limit, provider);
    }

    /// Returns these settings with options of the CUDA provider. [OnnxMemory#configure] adds some options of
    /// its own, and refuses options that would have no effect or do harm.
    ///
    /// @param provider options for the memory's device; the caller closes them
    public SessionSettings provider(OrtCUDAProviderOptions provider) {
        return new SessionSettings(name, streams, limit, provider);
    }

    String name() {
        return name;
    }

    SessionStreams streams() {
        return streams;
    }

    Optional<MemoryLimit> limit() {
        return Optional.ofNullable(limit);
    }

    Optional<OrtCUDAProviderOptions> provider() {
        return Optional.ofNullable(provider);
    }
}
