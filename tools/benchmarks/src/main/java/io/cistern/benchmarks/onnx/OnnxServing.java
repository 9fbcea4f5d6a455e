package io.cistern.benchmarks.onnx;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import io.cistern.DeviceMemory;
import io.cistern.onnxruntime.SessionMemory;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/// Serves requests of many shapes with three models, from the memory of a [MemorySource], and compares each
/// result with the first of its kind, which it computed with nothing else running.
///
/// ```
/// OnnxServing SOURCE THREADS REQUESTS MODELS     threads of a pool; 2 models are the encoders, 3 are all
/// OnnxServing SOURCE hop REQUESTS MODELS         each request on a new thread
/// ```
///
/// Its first line of output is JSON; then come figures of sessions and samples of the device's used memory.
public final class OnnxServing {
    private static final double TOLERANCE = 2e-2;
    private static final long MIB = 1 << 20;

    private final OrtEnvironment environment =
            OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_WARNING, "serving");
    private final DeviceMemory memory = DeviceMemory.system();
    private final MemorySource source;
    private final int models;
    private final OrtSession[] sessions;
    private final List<SessionMemory> sessionMemories = new ArrayList<>();
    private final float[][] expected;
    private final AtomicInteger wrong = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();

    private OnnxServing(String source, int models) throws OrtException {
        this.source = new MemorySource(environment, source, memory);
        this.models = models;
        sessions = new OrtSession[models];
        expected = new float[models * Models.KINDS][];
        for (int model = 0; model < models; model++) {
            sessions[model] = open(model);
        }
    }

    private OrtSession open(int model) throws OrtException {
        var options = new OrtSession.SessionOptions();
        Optional<SessionMemory> own = source.configure("model" + model, options);
        own.ifPresent(sessionMemories::add);
        byte[] bytes = Models.bytes(model);
        return own.isPresent()
                ? own.get().call(() -> environment.createSession(bytes, options))
                : environment.createSession(bytes, options);
    }

    public static void main(String[] arguments) throws Exception {
        boolean hop = arguments[1].equals("hop");
        OnnxServing serving = new OnnxServing(arguments[0], Integer.parseInt(arguments[3]));
        int requests = Integer.parseInt(arguments[2]);
        for (int kind = 0; kind < Models.KINDS; kind++) {
            for (int model = 0; model < serving.models; model++) {
                serving.expected[model * Models.KINDS + kind] = serving.compute(model, kind);
            }
        }
        serving.measure(hop ? 0 : Integer.parseInt(arguments[1]), requests);
        Runtime.getRuntime().halt(0); // closing is tested elsewhere
    }

    /// @param threads 0 for a new thread per request
    private void measure(int threads, int requests) throws Exception {
        long[] nanos = new long[requests];
        try (DeviceUse use = new DeviceUse(memory.driver(), 5, 20)) {
            long begin = System.nanoTime();
            if (threads == 0) {
                onNewThreads(nanos);
            } else {
                onPool(threads, nanos);
            }
            double seconds = (System.nanoTime() - begin) / 1e9;
            print(threads, seconds, nanos, use);
        }
    }

    private void onNewThreads(long[] nanos) throws InterruptedException {
        for (int i = 0; i < nanos.length; i++) {
            int request = i;
            Thread.ofPlatform().start(() -> serve(request, nanos)).join();
        }
    }

    private void onPool(int threads, long[] nanos) throws Exception {
        AtomicInteger next = new AtomicInteger();
        Callable<Void> worker = () -> {
            for (int i = next.getAndIncrement(); i < nanos.length; i = next.getAndIncrement()) {
                serve(i, nanos);
            }
            return null;
        };
        try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
            List<Future<Void>> workers = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                workers.add(pool.submit(worker));
            }
            for (Future<Void> ended : workers) {
                ended.get();
            }
        }
    }

    private void serve(int request, long[] nanos) {
        int model = request % models;
        int kind = request / models * 7 % Models.KINDS;
        long begin = System.nanoTime();
        try {
            compare(compute(model, kind), expected[model * Models.KINDS + kind]);
        } catch (OrtException | RuntimeException failure) {
            if (failed.getAndIncrement() == 0) {
                System.err.println(failure.getMessage());
                source.registered().flatMap(ours -> ours.lastFailure()).ifPresent(System.err::println);
            }
        }
        nanos[request] = System.nanoTime() - begin;
    }

    private float[] compute(int model, int kind) throws OrtException {
        try (OnnxTensor in = Models.input(environment, model, kind);
                OrtSession.Result out = sessions[model].run(Map.of("x", in))) {
            FloatBuffer values = ((OnnxTensor) out.get(0)).getFloatBuffer();
            float[] result = new float[values.remaining()];
            values.get(result);
            return result;
        }
    }

    private void compare(float[] result, float[] first) {
        for (int i = 0; i < first.length; i++) {
            if (!(Math.abs(result[i] - first[i]) <= TOLERANCE)) {
                wrong.incrementAndGet();
                return;
            }
        }
    }

    private void print(int threads, double seconds, long[] nanos, DeviceUse use) {
        Arrays.sort(nanos);
        var figures = source.registered().map(ours -> ours.figures());
        System.out.printf(
                "{\"source\":\"%s\",\"allocator\":\"%s\",\"models\":%d,\"threads\":%d,\"requests\":%d,\"seconds\":%.2f,"
                        + "\"perSecond\":%.1f,\"p50Millis\":%.2f,\"p99Millis\":%.2f,\"wrong\":%d,\"failed\":%d,"
                        + "\"mostMib\":%d,\"endMib\":%d,\"allocations\":%d,\"withoutStream\":%d,\"peakMib\":%d,"
                        + "\"reservedMib\":%d}%n",
                source,
                source.registered().isPresent() ? memory.current(0) : "",
                models,
                threads,
                nanos.length,
                seconds,
                nanos.length / seconds,
                nanos[nanos.length / 2] / 1e6,
                nanos[nanos.length * 99 / 100] / 1e6,
                wrong.get(),
                failed.get(),
                use.mostMib(),
                use.usedBytes() / MIB,
                figures.map(all -> all.allocations()).orElse(0L),
                figures.map(all -> all.withoutStream()).orElse(0L),
                figures.map(all -> all.peakBytes() / MIB).orElse(0L),
                memory.statistics(0).reservedBytes().orElse(0) / MIB);
        sessionMemories.forEach(own -> System.out.println("session " + own.name() + " " + own.figures()));
        use.samples().forEach(sample -> System.out.println("sample," + sample));
    }
}
