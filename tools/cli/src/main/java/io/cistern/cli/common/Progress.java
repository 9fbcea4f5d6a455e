package io.cistern.cli.common;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/// Shows the progress of long work as a bar on standard error, if that is a terminal. Any thread may count a step.
public final class Progress implements AutoCloseable {
    private static final Path STANDARD_ERROR = Path.of("/proc/self/fd/2");

    /// A smaller file is read in less than a second.
    private static final long SLOW_BYTES = 16 << 20;

    private final @Nullable ProgressBar bar;

    public Progress(String task, long steps) {
        bar = isTerminal(STANDARD_ERROR) ? builder(task, steps).build() : null;
    }

    /// Returns a stream that shows how much of it was read, on a terminal, until it is closed.
    ///
    /// @param byteSize how much it has
    static InputStream ofReading(InputStream in, long byteSize) {
        return byteSize < SLOW_BYTES || !isTerminal(STANDARD_ERROR)
                ? in
                : ProgressBar.wrap(in, builder("read", byteSize).setUnit(" MiB", 1 << 20));
    }

    public synchronized void step() {
        if (bar != null) {
            bar.step();
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
