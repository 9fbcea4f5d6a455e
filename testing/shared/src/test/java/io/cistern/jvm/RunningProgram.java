package io.cistern.jvm;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/// A Java program that runs in a JVM of its own and is talked to by lines; ended with the test.
public final class RunningProgram implements AutoCloseable {
    private static final int PATIENCE_SECONDS = 60;
    private static final String END = "\u0000end";

    private final String name;
    private final Process process;
    private final BufferedWriter toProgram;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final List<String> seen = new ArrayList<>();

    RunningProgram(String name, Process process) {
        this.name = name;
        this.process = process;
        this.toProgram = process.outputWriter(StandardCharsets.UTF_8);
        Thread.ofPlatform().daemon().name(name + " output").start(this::read);
    }

    private void read() {
        try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
            output.lines().forEach(lines::add);
        } catch (IOException | RuntimeException closed) {
            lines.add(closed.toString());
        }
        lines.add(END);
    }

    /// Says a line to it.
    ///
    /// @return this
    public RunningProgram say(String line) throws IOException {
        toProgram.write(line);
        toProgram.newLine();
        toProgram.flush();
        return this;
    }

    /// Reads its lines up to one that begins so.
    ///
    /// @return that line
    /// @throws AssertionError with what it printed, if it ends before or takes over a minute
    public String expect(String beginning) throws InterruptedException {
        while (true) {
            String line = lines.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            if (line == null || line.equals(END)) {
                throw new AssertionError(name + (line == null ? " does not say \"" : " ended before it said \"")
                        + beginning + "\"; it said\n" + String.join("\n", seen));
            }
            seen.add(line);
            if (line.startsWith(beginning)) {
                return line;
            }
        }
    }

    /// The number of its process.
    public long pid() {
        return process.pid();
    }

    /// Whether it has not ended.
    public boolean isAlive() {
        return process.isAlive();
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    public void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /// Waits until it ends by itself.
    ///
    /// @throws AssertionError with what it printed, if it takes over a minute or ends with another code than 0
    public void awaitEnd() throws InterruptedException {
        if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
            lines.drainTo(seen);
            throw new AssertionError(name + (process.isAlive() ? " does not end" : " ended with " + process.exitValue())
                    + "\n" + String.join("\n", seen));
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
