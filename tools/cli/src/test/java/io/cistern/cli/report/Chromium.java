package io.cistern.cli.report;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/// A browser without a window, driven through its debugging protocol (DevTools), with one page.
final class Chromium implements AutoCloseable {
    private static final List<String> NAMES = List.of("chromium", "chromium-browser", "google-chrome", "chrome");
    /// The locale of some browsers where none is set. Intl refuses it.
    static final String LOCALE = "en-US@posix";

    private static final Duration PATIENCE = Duration.ofMinutes(2);

    private final Process process;
    private final Path profile;
    private final HttpClient client = HttpClient.newHttpClient();
    private final WebSocket socket;
    private final Map<Integer, CompletableFuture<Map<String, Object>>> answers = new ConcurrentHashMap<>();
    private final AtomicInteger lastId = new AtomicInteger();
    private final String session;

    private Chromium(Path program, Path profile) throws Exception {
        this.profile = profile;
        process = new ProcessBuilder(
                        program.toString(),
                        "--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--disable-dev-shm-usage",
                        "--no-first-run",
                        "--accept-lang=" + LOCALE,
                        "--remote-debugging-port=0",
                        "--user-data-dir=" + profile,
                        "about:blank")
                .redirectErrorStream(true)
                .redirectOutput(profile.resolve("output.txt").toFile())
                .start();
        List<String> port = port(profile.resolve("DevToolsActivePort"));
        socket = client.newWebSocketBuilder()
                .buildAsync(URI.create("ws://127.0.0.1:" + port.get(0) + port.get(1)), new Answers())
                .get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        Object target =
                send("Target.createTarget", Map.of("url", "about:blank"), "").get("targetId");
        session = (String) send("Target.attachToTarget", Map.of("targetId", target, "flatten", true), "")
                .get("sessionId");
        send("Page.enable", Map.of());
    }

    /// Returns where the browser is, if this machine has one. The environment's `CHROMIUM` goes before the
    /// path.
    static Optional<Path> find() {
        Stream<String> named = Stream.ofNullable(System.getenv("CHROMIUM"));
        Stream<String> onPath = Stream.of(
                        Optional.ofNullable(System.getenv("PATH")).orElse("").split(":"))
                .flatMap(folder -> NAMES.stream().map(name -> folder + "/" + name));
        return Stream.concat(named, onPath)
                .map(Path::of)
                .filter(Files::isExecutable)
                .findFirst();
    }

    /// @param profile an empty folder
    static Chromium start(Path program, Path profile) throws Exception {
        return new Chromium(program, profile);
    }

    private List<String> port(Path file) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (System.nanoTime() < end) {
            if (Files.exists(file) && Files.readAllLines(file).size() == 2) {
                return Files.readAllLines(file);
            }
            if (!process.isAlive()) {
                throw new IllegalStateException("the browser ended with " + process.exitValue());
            }
            Thread.sleep(50);
        }
        throw new IllegalStateException("the browser tells no port");
    }

    /// Shows a file in a window of this size, once it is loaded.
    void open(Path file, int width, int height, String scheme) throws Exception {
        send(
                "Emulation.setDeviceMetricsOverride",
                Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", false));
        send(
                "Emulation.setEmulatedMedia",
                Map.of("features", List.of(Map.of("name", "prefers-color-scheme", "value", scheme))));
        send("Page.navigate", Map.of("url", file.toUri().toString()));
        evaluate("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))");
        evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /// The value of an expression of JavaScript, awaited if it is a promise.
    Object evaluate(String expression) throws Exception {
        Map<String, Object> answer =
                send("Runtime.evaluate", Map.of("expression", expression, "awaitPromise", true, "returnByValue", true));
        if (answer.get("exceptionDetails") != null) {
            throw new IllegalStateException(expression + ": " + answer.get("exceptionDetails"));
        }
        Object value = ((Map<?, ?>) answer.get("result")).get("value");
        return value == null ? "" : value;
    }

    /// Presses a key, as `KeyboardEvent.key` names it.
    void press(String key) throws Exception {
        send(
                "Input.dispatchKeyEvent",
                key.equals("Enter") // Only with a text does it open and press what has the focus.
                        ? Map.of("type", "keyDown", "key", key, "code", key, "text", "\r")
                        : Map.of("type", "rawKeyDown", "key", key, "code", key));
        send("Input.dispatchKeyEvent", Map.of("type", "keyUp", "key", key, "code", key));
    }

    private Map<String, Object> send(String method, Map<String, Object> parameters) throws Exception {
        return send(method, parameters, session);
    }

    private Map<String, Object> send(String method, Map<String, Object> parameters, String inSession) throws Exception {
        int id = lastId.incrementAndGet();
        CompletableFuture<Map<String, Object>> answer = new CompletableFuture<>();
        answers.put(id, answer);
        Map<String, Object> message = inSession.isEmpty()
                ? Map.of("id", id, "method", method, "params", parameters)
                : Map.of("id", id, "method", method, "params", parameters, "sessionId", inSession);
        socket.sendText(JSON.std.asString(message), true).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        return answer.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    @Override
    public void close() throws IOException {
        socket.abort();
        client.shutdownNow();
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly().onExit().join();
        Files.deleteIfExists(profile.resolve("SingletonSocket")); // A link to elsewhere.
    }

    /// Puts parts of messages together and hands answers to those that wait for them.
    private final class Answers implements WebSocket.Listener {
        private final StringBuilder text = new StringBuilder();

        @Override
        public CompletionStage<?> onText(WebSocket from, CharSequence part, boolean isLast) {
            text.append(part);
            if (isLast) {
                accept(text.toString());
                text.setLength(0);
            }
            from.request(1);
            return CompletableFuture.completedStage(null);
        }

        @SuppressWarnings("unchecked")
        private void accept(String message) {
            try {
                Map<String, Object> answer = JSON.std.mapFrom(message);
                CompletableFuture<Map<String, Object>> waiting =
                        answer.get("id") instanceof Integer id ? answers.remove(id) : null;
                if (waiting == null) {
                    return; // An event.
                }
                if (answer.get("result") instanceof Map<?, ?> result) {
                    waiting.complete((Map<String, Object>) result);
                } else {
                    waiting.completeExceptionally(new IllegalStateException(message));
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
