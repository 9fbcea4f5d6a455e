package io.cistern.cli.common;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/// Reports the progress of long work on standard error: as a bar on a terminal, otherwise as lines for
/// the slow steps. Any thread may count a step.
public final class Progress implements AutoCloseable {
    private static final Path STANDARD_ERROR = Path.of("/proc/self/fd/2");

    /// A smaller file is read in less than a second.
    private static final long SLOW_BYTES = 16 << 20;

    private final String task;
    private final long steps;
    private final PrintWriter err;
    private final @Nullable ProgressBar bar;
    private long done;

    /// Begins work of that many steps.
    ///
    /// @param err standard error, for lines
    public Progress(String task, long steps, PrintWriter err) {
        this.task = task;
        this.steps = steps;
        this.err = err;
        bar = isTerminal(STANDARD_ERROR) ? open(task, steps) : null;
    }

    /// Returns a stream that shows how much of it was read, on a terminal, until it is closed.
    ///
    /// @param byteSize how much it has
    static InputStream ofReading(InputStream in, long byteSize) {
        return byteSize < SLOW_BYTES || !isTerminal(STANDARD_ERROR)
                ? in
                : ProgressBar.wrap(in, builder("read", byteSize).setUnit(" MiB", 1 << 20));
    }

    /// Counts one more step.
    public synchronized void step() {
        done++;
        if (bar != null) {
            bar.step();
        }
    }

    /// Counts one more step that took long enough for a line of its own.
    ///
    /// @param what describes the step
    public synchronized void step(String what) {
        step();
        if (bar == null) {
            err.println("cistern: " + task + " " + done + " of " + steps + ": " + what);
            err.flush();
        }
    }

    /// Shows beside the bar what is being done now.
    public void message(String message) {
        if (bar != null) {
            bar.setExtraMessage(message);
        }
    }

    @Override
    public void close() {
        if (bar != null) {
            bar.close();
        }
    }

    /// Asks the kernel about one descriptor, because Java's console answers for input and output together.
    private static boolean isTerminal(Path descriptor) {
        try {
            String target = Files.readSymbolicLink(descriptor).toString();
            return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty") || target.equals("/dev/console");
        } catch (IOException | UnsupportedOperationException e) {
            return false;
        }
    }

    private static ProgressBar open(String task, long steps) {
        return builder(task, steps).build();
    }

    private static ProgressBarBuilder builder(String task, long steps) {
        return new ProgressBarBuilder()
                .setTaskName(task)
                .setInitialMax(steps)
                .setStyle(ProgressBarStyle.ASCII)
                .setUpdateIntervalMillis(100)
                .clearDisplayOnFinish()
                .continuousUpdate();
    }
}
