package io.cistern.cli.common;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/// Tells on standard error how far a long work is: in a bar if that is a terminal, else in lines, where there is
/// something to say.
public final class Progress implements AutoCloseable {
    private static final Path STANDARD_ERROR = Path.of("/proc/self/fd/2");

    private final String task;
    private final long steps;
    private final PrintWriter err;
    private final @Nullable ProgressBar bar;
    private long done;

    /// Begins a work of so many steps.
    ///
    /// @param err standard error, for lines
    public Progress(String task, long steps, PrintWriter err) {
        this.task = task;
        this.steps = steps;
        this.err = err;
        bar = isTerminal(STANDARD_ERROR) ? open(task, steps) : null;
    }

    /// One more step is done.
    public void step() {
        done++;
        if (bar != null) {
            bar.step();
        }
    }

    /// One more step is done, one of those that take so long that each is worth a line.
    ///
    /// @param what it was
    public void step(String what) {
        step();
        if (bar == null) {
            err.println("cistern: " + task + " " + done + " of " + steps + ": " + what);
            err.flush();
        }
    }

    /// Says what is being done now.
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

    /// Java's own console answers for input and output together; the kernel knows each.
    private static boolean isTerminal(Path descriptor) {
        try {
            String target = Files.readSymbolicLink(descriptor).toString();
            return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty") || target.equals("/dev/console");
        } catch (IOException | UnsupportedOperationException e) {
            return false;
        }
    }

    private static ProgressBar open(String task, long steps) {
        return new ProgressBarBuilder()
                .setTaskName(task)
                .setInitialMax(steps)
                .setStyle(ProgressBarStyle.ASCII)
                .setUpdateIntervalMillis(100)
                .clearDisplayOnFinish()
                .continuousUpdate()
                .build();
    }
}
