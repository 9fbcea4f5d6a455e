package io.cistern.cli;

import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/// Shows on standard error how far a long work is, if that is a terminal; otherwise nothing.
final class Progress implements AutoCloseable {
    private final @Nullable ProgressBar bar;

    /// Begins a work of so many steps.
    Progress(String task, long steps) {
        bar = Terminal.ERR.watched() ? open(task, steps) : null;
    }

    /// One more step is done.
    void step() {
        if (bar != null) {
            bar.step();
        }
    }

    /// Says what is being done now.
    void message(String message) {
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
