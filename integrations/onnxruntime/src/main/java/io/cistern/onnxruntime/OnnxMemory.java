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

/// Gives the CUDA sessions of ONNX Runtime device memory of Cistern, in place of an arena for each session.
///
/// ```java
/// OnnxMemory memory = OnnxMemory.register(environment, DeviceMemory.system());
/// memory.configure(options);                                  // for each session
/// OrtSession session = environment.createSession("model.onnx", options);
/// ```
///
/// All sessions of a device share the allocator that is current, or that of the scope that a request runs in.
/// The host's memory, pinned memory too, stays ONNX Runtime's own.
///
/// **Streams.** ONNX Runtime frees a block while the device still works on it, so memory may go on to another
/// session only in the order of the streams. Therefore each session works on one stream of Cistern's
/// ([SessionStreams#ONE_OF_SESSION]), or ONNX Runtime tells its own ([SessionStreams#ONE_FOR_EACH_REQUEST]).
///
/// **Errors.** ONNX Runtime throws where an allocation fails. [#lastFailure] says why; each kind of failure
/// is also logged once.
///
/// **Closing.** In any order. A session that outlives the memory can't allocate any more, frees what it has,
/// and does no harm.
///
/// **Threads.** Any thread may call any method at any time.
public final class OnnxMemory implements AutoCloseable {
    /// What is registered. ONNX Runtime would put a second allocator of a device in the place of the first.
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
    private final MemorySegment info;
    private final AtomicBoolean closed = new AtomicBoolean();

    private OnnxMemory(OnnxApi api, DeviceMemory memory, int device) {
        this.api = api;
        this.memory = memory;
        this.device = device;
        idleStreams = IdleStreams.of(memory);
        calls = new SessionCalls(api, memory, device, idleStreams);
        info = api.memoryInfo(device); // for good, as the table that refers to it
        environment = api.environment();
    }

    /// Registers the memory of device 0 with ONNX Runtime.
    ///
    /// @param environment ONNX Runtime's environment, of which a process has one
    /// @throws UnsupportedOperationException if this ONNX Runtime has no CUDA provider, or is older than 1.23
    /// @throws IllegalStateException if there is an `OnnxMemory` of the device already
    public static OnnxMemory register(OrtEnvironment environment, DeviceMemory memory) {
        return register(environment, memory, 0);
    }

    /// Registers the memory of a device with ONNX Runtime.
    ///
    /// @param environment ONNX Runtime's environment, of which a process has one
    /// @param device the device's ordinal, for ONNX Runtime the `device_id`
    /// @throws UnsupportedOperationException if this ONNX Runtime has no CUDA provider, or is older than 1.23
    /// @throws IllegalStateException if there is an `OnnxMemory` of the device already
    /// @throws IndexOutOfBoundsException if there is no such device
    public static OnnxMemory register(OrtEnvironment environment, DeviceMemory memory, int device) {
        Objects.requireNonNull(environment, "environment"); // that exists, and so has loaded the library
        if (!OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA)) {
            throw new UnsupportedOperationException("ONNX Runtime " + environment.getVersion()
                    + " has no CUDA provider: put com.microsoft.onnxruntime:onnxruntime_gpu on the class path in place"
                    + " of onnxruntime");
        }
        return register(OnnxApi.find(), memory, device);
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
            api.releaseMemoryInfo(made.info);
            api.releaseEnvironment(made.environment);
            throw refused;
        }
    }

    private void register() {
        if (!REGISTERED.add(place())) {
            throw new IllegalStateException("there is an OnnxMemory of " + this + " already; close it first");
        }
        try {
            AllocatorTable table = new AllocatorTable(api.allocatorVersion(), info, calls);
            api.registerAllocator(environment, table.structure());
        } catch (Throwable refused) {
            REGISTERED.remove(place());
            throw refused;
        }
    }

    private Place place() {
        return new Place(environment.address(), device);
    }

    /// Has sessions that are made with these options use this memory, on one stream.
    ///
    /// @throws OrtException if ONNX Runtime can't load its CUDA provider, as where CUDA's libraries are not
    ///     found
    /// @throws IllegalStateException if this is closed
    public SessionMemory configure(SessionOptions options) throws OrtException {
        return configure(options, SessionSettings.named("session"));
    }

    /// Has sessions that are made with these options use this memory. Adds the CUDA provider to them.
    ///
    /// @throws OrtException if ONNX Runtime can't load its CUDA provider, as where CUDA's libraries are not
    ///     found
    /// @throws IllegalArgumentException for an option of the provider that would do nothing or harm
    /// @throws IllegalStateException if this is closed
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
    /// @throws IllegalStateException if this is closed
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

    /// Returns the sessions whose memory was configured and not closed.
    public List<SessionMemory> sessions() {
        return List.copyOf(sessions);
    }

    /// Returns the figures of all sessions of the device.
    public SessionFigures figures() {
        return calls.figures();
    }

    /// Gives idle memory of the device back to the driver, also while sessions live and work.
    ///
    /// @return what went back, and why the rest did not
    public TrimResult trim(TrimMode mode) {
        return memory.trim(device, 0, mode);
    }

    /// Returns what failed last in a call of ONNX Runtime; a lack of memory too, with its report.
    public Optional<Throwable> lastFailure() {
        return calls.lastFailure();
    }

    /// Closes the memory of all sessions, and takes the allocator from ONNX Runtime. Sessions that live on
    /// can't allocate any more, and options that were configured have to be configured anew for new sessions.
    /// Closing twice does nothing.
    ///
    /// @throws IllegalStateException if ONNX Runtime refuses; all else is done
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            sessions().forEach(this::close);
            calls.close();
            try {
                api.unregisterAllocator(environment, info);
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
