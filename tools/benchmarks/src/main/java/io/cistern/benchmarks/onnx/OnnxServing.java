package io.cistern.benchmarks.onnx;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import io.cistern.DeviceMemory;
import io.cistern.benchmarks.Json;
import io.cistern.benchmarks.Samples;
import io.cistern.onnxruntime.SessionMemory;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;

/// Serves requests of many shapes with several models, from the memory of a [MemorySource], and compares each result
/// with the first of its kind, which it computed with nothing else running.
///
/// Arguments: the source; threads; requests; models: 2 are the encoders, 3 are all. Prints a line.
public final class OnnxServing {
    private static final double TOLERANCE = 2e-2;
    private static final long MIB = 1 << 20;

    private final OrtEnvironment environment =
            OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_WARNING, "serving");
    private final DeviceMemory memory = DeviceMemory.system();
    private final MemorySource source;
    private final int models;
    private final OrtSession[] sessions;
    private final float[][] expected;
    private final AtomicInteger wrong = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();
    private volatile long mostUsedBytes;

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
        byte[] bytes = Models.bytes(model);
        return own.isPresent()
                ? own.get().call(() -> environment.createSession(bytes, options))
                : environment.createSession(bytes, options);
    }

    /// Measures and prints.
    public static void main(String[] arguments) throws Exception {
        OnnxServing serving = new OnnxServing(arguments[0], Integer.parseInt(arguments[3]));
        for (int kind = 0; kind < Models.KINDS; kind++) {
            for (int model = 0; model < serving.models; model++) {
                serving.expected[model * Models.KINDS + kind] = serving.compute(model, kind);
            }
        }
        serving.measure(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
        Runtime.getRuntime().halt(0); // Closing is tested elsewhere.
    }

    private void measure(int threads, int requests) throws InterruptedException {
        long[] nanos = new long[requests];
        AtomicInteger next = new AtomicInteger();
        Thread look = Thread.ofPlatform().daemon().start(this::lookAtUse);
        List<Thread> workers = new ArrayList<>();
        long begin = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            workers.add(Thread.ofPlatform().start(() -> {
                for (int request = next.getAndIncrement(); request < requests; request = next.getAndIncrement()) {
                    serve(request, nanos);
                }
            }));
        }
        for (Thread worker : workers) {
            worker.join();
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        look.interrupt();
        look.join();
        print(threads, seconds, nanos);
    }

    /// Keeps the most bytes in use on the device.
    private void lookAtUse() {
        try {
            while (true) {
                var info = memory.driver().memory().info(0);
                mostUsedBytes = Math.max(mostUsedBytes, info.totalBytes() - info.freeBytes());
                Thread.sleep(5);
            }
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
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

    private void print(int threads, double seconds, long[] nanos) {
        Samples latency = new Samples(
                LongStream.of(nanos).mapToObj(each -> (double) each / 1e6).toList());
        boolean ours = source.registered().isPresent();
        Json.print(
                "source", source.toString(),
                "allocator", ours ? memory.current(0).toString() : "",
                "models", models,
                "threads", threads,
                "requests", nanos.length,
                "seconds", Json.rounded(seconds, 2),
                "perSecond", Json.rounded(nanos.length / seconds, 1),
                "p50Millis", Json.rounded(latency.median(), 2),
                "p99Millis", Json.rounded(latency.at(0.99), 2),
                "wrong", wrong.get(),
                "failed", failed.get(),
                "mostMib", mostUsedBytes / MIB,
                "reservedMib", memory.statistics(0).reservedBytes().orElse(0) / MIB);
    }
}
