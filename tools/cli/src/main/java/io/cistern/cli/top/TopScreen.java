package io.cistern.cli.top;

import io.cistern.cli.common.UsageException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jline.terminal.Attributes;
import org.jline.terminal.Terminal;
import org.jline.utils.AttributedString;
import org.jline.utils.Display;
import org.jline.utils.InfoCmp.Capability;
import org.jline.utils.NonBlockingReader;

/// Shows a program's figures on a terminal at each interval, and obeys keys.
final class TopScreen {
    private static final String KEYS = "< > sort   r reverse   w who waits   s snapshot   q quit";
    /// Bounds each wait for a key, so that the loop notices a signal.
    private static final long MAX_WAIT_MILLIS = 200;
    private static final long ESCAPE_MILLIS = 200;
    private static final int ESCAPE = 27;
    private static final int NARROWEST = 20;
    /// For terminals that don't report their size.
    private static final int USUAL_COLUMNS = 80;
    private static final int USUAL_ROWS = 50;

    private final Terminal terminal;
    private final WatchedProgram program;
    private final Duration interval;
    private Column sort;
    private boolean reversed;
    private boolean waitsShown;
    private String message = "";
    private volatile boolean quit;

    private List<Reading> before = List.of();
    private List<Reading> now = List.of();

    TopScreen(Terminal terminal, WatchedProgram program, Duration interval, Column sort) {
        this.terminal = terminal;
        this.program = program;
        this.interval = interval;
        this.sort = sort;
    }

    /// Shows figures until a key or a signal ends the program.
    ///
    /// @throws IOException if the program has ended
    void run() throws IOException {
        Attributes usual = terminal.enterRawMode();
        terminal.handle(Terminal.Signal.INT, _ -> quit = true);
        terminal.puts(Capability.enter_ca_mode);
        terminal.puts(Capability.cursor_invisible);
        try {
            Display display = new Display(terminal, true);
            while (!quit) {
                before = now;
                now = program.read();
                long next = System.nanoTime() + interval.toNanos();
                draw(display);
                while (!quit && pressedBefore(next)) {
                    display.clear(); // A key redraws everything, in case something else wrote over it.
                    draw(display);
                }
            }
        } finally {
            terminal.puts(Capability.cursor_normal);
            terminal.puts(Capability.exit_ca_mode);
            terminal.setAttributes(usual);
            terminal.flush();
        }
    }

    private void draw(Display display) throws IOException {
        int rows = terminal.getHeight() > 0 ? terminal.getHeight() : USUAL_ROWS;
        int columns = terminal.getWidth() > NARROWEST ? terminal.getWidth() : USUAL_COLUMNS;
        display.resize(rows, columns);
        List<AttributedString> lines = new ArrayList<>();
        for (String line : text(columns).lines().limit(rows - 1L).toList()) {
            lines.add(AttributedString.fromAnsi(line).columnSubSequence(0, columns));
        }
        lines.add(new AttributedString(message.isEmpty() ? KEYS : message).columnSubSequence(0, columns));
        display.update(lines, -1);
    }

    private String text(int width) throws IOException {
        String table = TopTable.format(now, Row.of(before, now), sort, reversed, width);
        return program.title() + "\n" + table + (waitsShown ? "\n" + TopTable.format(program.waiting()) : "");
    }

    /// Waits for a key and obeys it.
    ///
    /// @return false once the time for the next reading has come
    private boolean pressedBefore(long deadline) throws IOException {
        while (!quit) {
            long millis = (deadline - System.nanoTime()) / 1_000_000;
            if (millis <= 0) {
                return false;
            }
            int key = terminal.reader().read(Math.min(millis, MAX_WAIT_MILLIS));
            if (key == NonBlockingReader.EOF) {
                quit = true;
            } else if (key != NonBlockingReader.READ_EXPIRED) {
                press(key);
                return true;
            }
        }
        return false;
    }

    private void press(int key) throws IOException {
        message = "";
        switch (key) {
            case 'q', 'Q' -> quit = true;
            case '>' -> sort = sort.neighbour(1);
            case '<' -> sort = sort.neighbour(-1);
            case 'r' -> reversed = !reversed;
            case 'w' -> waitsShown = !waitsShown;
            case 's' -> message = snapshot();
            case ESCAPE -> arrow();
            default -> {}
        }
    }

    /// Reads the rest of an arrow key's sequence: `[C` or `OC` is the right arrow.
    private void arrow() throws IOException {
        int second = terminal.reader().read(ESCAPE_MILLIS);
        if (second == '[' || second == 'O') {
            switch (terminal.reader().read(ESCAPE_MILLIS)) {
                case 'C' -> sort = sort.neighbour(1);
                case 'D' -> sort = sort.neighbour(-1);
                default -> {}
            }
        }
    }

    private String snapshot() throws IOException {
        try {
            return program.snapshot(Path.of(""));
        } catch (UsageException e) {
            return String.valueOf(e.getMessage());
        }
    }
}
