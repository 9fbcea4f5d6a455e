package io.cistern.onnxruntime;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import io.cistern.DeviceMemory;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;

/// Gives Cistern's device memory to the CUDA sessions of ONNX Runtime, instead of one arena for each session.
///
/// ```java
/// OnnxMemory memory = OnnxMemory.register(environment, DeviceMemory.system());
/// memory.configure(options);                                  // for each session
/// OrtSession session = environment.createSession("model.onnx", options);
/// ```
///
/// All sessions of a device share the current allocator; a request that runs in a scope uses the scope's
/// allocator instead. ONNX Runtime still allocates host memory itself, including pinned memory.
///
/// **Streams.** ONNX Runtime frees a block while the device still works on it, so another session may
/// get the memory only in stream order. So Cistern has to know the streams: either each session uses a
/// stream of Cistern's ([SessionStreams#ONE_OF_SESSION]), or ONNX Runtime names its own streams
/// ([SessionStreams#ONE_FOR_EACH_REQUEST]).
///
/// **Errors.** If an allocation fails, ONNX Runtime throws. [#lastFailure] gives the reason; each kind of
/// failure is also logged once.
///
/// **Closing.** Memory and sessions may be closed in any order. A session that outlives its memory can still
/// free its blocks, but can't allocate, unless another `OnnxMemory` of the device is open by then.
///
/// **Threads.** Any thread may call any method at any time.
public final class OnnxMemory implements AutoCloseable {
    /// The registered devices. ONNX Runtime would replace the first allocator of a device by a second.
    private static final Set<Place> REGISTERED = ConcurrentHashMap.newKeySet();

    /// @param environment the address of ONNX Runtime's environment
    private record Place(long environment, int device) {}

    private final OnnxApi api;
    private final DeviceMemory memory;
    private final int device;
    private final IdleStreams idleStreams;
    private final SessionCalls calls;
    private final Queue<SessionMemory> sessions = new ConcurrentLinkedQueue<>();
    private final MemorySegment environment;
    private final AllocatorTable table;
    private final AtomicBoolean closed = new AtomicBoolean();

    private OnnxMemory(OnnxApi api, DeviceMemory memory, int device) {
        this.api = api;
        this.memory = memory;
        this.device = device;
        idleStreams = IdleStreams.of(memory);
        calls = new SessionCalls(api, memory, device, idleStreams);
        table = AllocatorTable.of(api, device);
        environment = api.environment();
    }

    /// Registers the memory of device 0 with ONNX Runtime.
    ///
    /// @param environment ONNX Runtime's environment, the only one of the process
    /// @throws UnsupportedOperationException if this ONNX Runtime has no CUDA provider, or is older than 1.23; or
    ///     if the GPU is simulated
    /// @throws IllegalStateException if an `OnnxMemory` of the device is already open
    public static OnnxMemory register(OrtEnvironment environment, DeviceMemory memory) {
        return register(environment, memory, 0);
    }

    /// Registers the memory of a device with ONNX Runtime.
    ///
    /// @param environment ONNX Runtime's environment, the only one of the process
    /// @param device the device's ordinal, which is ONNX Runtime's `device_id`
    /// @throws UnsupportedOperationException if this ONNX Runtime has no CUDA provider, or is older than 1.23; or
    ///     if the GPU is simulated
    /// @throws IllegalStateException if an `OnnxMemory` of the device is already open
    /// @throws IndexOutOfBoundsException if there is no such device
    public static OnnxMemory register(OrtEnvironment environment, DeviceMemory memory, int device) {
        Objects.requireNonNull(environment, "environment"); // one that exists has loaded the library
        if (!OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA)) {
            throw new UnsupportedOperationException("ONNX Runtime " + environment.getVersion()
                    + " has no CUDA provider: put com.microsoft.onnxruntime:onnxruntime_gpu on the class path instead"
                    + " of onnxruntime");
        }
        requireReal(memory);
        return register(OnnxApi.find(), memory, device);
    }

    /// ONNX Runtime would work with simulated addresses on the real GPU.
    static void requireReal(DeviceMemory memory) {
        if (memory.driver().simulated()) {
            throw new UnsupportedOperationException("ONNX Runtime's CUDA provider needs a real GPU, and this device"
                    + " memory is simulated; set -Dcistern.driver=cuda to see why no real GPU can be used");
        }
    }

    static OnnxMemory register(OnnxApi api, DeviceMemory memory, int device) {
        Objects.checkIndex(device, memory.environment().deviceCount());
        OnnxMemory made = new OnnxMemory(api, memory, device);
        try {
            made.register();
            return made;
        } catch (Throwable refused) {
            made.closed.set(true);
            made.calls.close();
            api.releaseEnvironment(made.environment);
            throw refused;
        }
    }

    private void register() {
        if (!REGISTERED.add(place())) {
            throw new IllegalStateException(this + " already has an OnnxMemory; close it first");
        }
        try {
            table.serve(calls);
            api.registerAllocator(environment, table.structure());
        } catch (Throwable refused) {
            REGISTERED.remove(place());
            throw refused;
        }
    }

    private Place place() {
        return new Place(environment.address(), device);
    }

    /// Makes sessions that are created with these options use this memory, and adds the CUDA provider to
    /// the options. The sessions work on one stream.
    ///
    /// @throws OrtException if ONNX Runtime can't load its CUDA provider, for example because it
    ///     can't find CUDA's libraries
    /// @throws IllegalStateException if this object is closed
    public SessionMemory configure(SessionOptions options) throws OrtException {
        return configure(options, SessionSettings.named("session"));
    }

    /// Makes sessions that are created with these options use this memory, and adds the CUDA
    /// provider to the options.
    ///
    /// @throws OrtException if ONNX Runtime can't load its CUDA provider, for example because it
    ///     can't find CUDA's libraries
    /// @throws IllegalArgumentException if an option of the provider would have no effect, or do harm
    /// @throws IllegalStateException if this object is closed
    public SessionMemory configure(SessionOptions options, SessionSettings settings) throws OrtException {
        var given = settings.provider();
        if (given.isPresent()) {
            ProviderOptions.check(given.get().getOptionsString(), device);
        }
        try (OrtCUDAProviderOptions provider =
                given.isPresent() ? ProviderOptions.copy(given.get(), device) : new OrtCUDAProviderOptions(device)) {
            return configure(options, settings, provider);
        }
    }

    private SessionMemory configure(SessionOptions options, SessionSettings settings, OrtCUDAProviderOptions provider)
            throws OrtException {
        SessionMemory session = open(settings);
        try {
            if (session.stream().isPresent()) {
                ProviderOptions.setStream(provider, session.stream().get().handle());
            }
            options.addConfigEntry("session.use_env_allocators", "1");
            options.addCUDA(provider);
            return session;
        } catch (OrtException | RuntimeException | Error refused) {
            session.close();
            throw refused;
        }
    }

    /// Opens the memory of a session, without telling ONNX Runtime.
    ///
    /// @throws IllegalStateException if this object is closed
    SessionMemory open(SessionSettings settings) {
        if (closed.get()) {
            throw new IllegalStateException(this + " is closed");
        }
        boolean own = settings.streams() == SessionStreams.ONE_OF_SESSION;
        SessionMemory session = new SessionMemory(this, settings, own ? idleStreams.take(device) : null);
        calls.add(session);
        sessions.add(session);
        return session;
    }

    void close(SessionMemory session) {
        if (sessions.remove(session)) {
            calls.close(session);
        }
    }

    /// Returns the session memories that were configured and are not closed.
    public List<SessionMemory> sessions() {
        return List.copyOf(sessions);
    }

    /// Returns the figures of all sessions of the device together.
    public SessionFigures figures() {
        return calls.figures();
    }

    /// Gives idle memory of the device back to the driver, even while sessions are open and run
    /// requests.
    ///
    /// @return the bytes given back, and why the rest stayed
    public TrimResult trim(TrimMode mode) {
        return memory.trim(device, 0, mode);
    }

    /// Returns the last failure in a call of ONNX Runtime; empty if there was none. If memory ran out, this
    /// is Cistern's exception with its report.
    public Optional<Throwable> lastFailure() {
        return calls.lastFailure();
    }

    /// Closes the memory of all sessions, and removes the allocator from ONNX Runtime. Sessions that are
    /// still open can't allocate any more. To create more sessions with the same options, configure the
    /// options again. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if ONNX Runtime refuses; everything else is done even then
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            sessions().forEach(this::close);
            calls.close();
            try {
                api.unregisterAllocator(environment, table.info());
            } finally {
                REGISTERED.remove(place());
                api.releaseEnvironment(environment);
            }
        }
    }

    @Override
    public String toString() {
        return "device " + device + " of ONNX Runtime " + api.versionText();
    }
}
