package io.cistern.cli.imports;

import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputLines;
import io.cistern.cli.imports.ForeignEvent.Kind;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceReader;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Reads the log of RMM's `logging_resource_adaptor`: CSV with the columns
/// `Thread,Time,Action,Pointer,Size,Stream`, for one device. Times are times of day, so they start
/// again at midnight. Pointers and streams are hexadecimal, with or without `0x`.
final class RmmLog {
    private static final int COLUMNS = 6;
    private static final Map<String, Kind> KINDS = Map.of(
            "allocate", Kind.ALLOCATED, "free", Kind.FREED, "deallocate", Kind.FREED, "allocate failure", Kind.REFUSED);
    private static final Pattern TIME = Pattern.compile("(\\d{1,2}):(\\d{1,2}):(\\d{1,2})[.:](\\d{1,9})");
    private static final Pattern NUMBER = Pattern.compile("\\d{1,18}|1\\d{18}");
    private static final Pattern POINTER = Pattern.compile("(?:0[xX])?([0-9a-fA-F]{1,16})");
    private static final long DAY_NANOS = Duration.ofDays(1).toNanos();
    private static final int NANO_DIGITS = 9;

    private final List<ForeignEvent> events = new ArrayList<>();
    private long firstNanos = -1;
    private long lastNanos;
    private long days;

    private RmmLog() {}

    /// Reads a log.
    ///
    /// @param in its content, with the header
    /// @throws InputException if a row is not one of an RMM log, or there are none
    static ForeignLog read(String file, InputStream in) throws InputException {
        InputLines lines = new InputLines(file, in, TraceReader.MAX_TEXT_BYTES);
        RmmLog log = new RmmLog();
        String warning = null;
        lines.next();
        for (String line = lines.next(); line != null; line = lines.next()) {
            try {
                log.add(line);
            } catch (IllegalArgumentException e) {
                InputException error = lines.error("is not a row of an RMM log: " + e.getMessage());
                if (!lines.isCut()) {
                    throw error;
                }
                warning = error.getMessage() + "; the file ends there, so this row is left out";
            }
        }
        if (log.events.isEmpty()) {
            throw lines.error("no rows after the header");
        }
        return new ForeignLog(List.of(), log.events, List.of(), new CallStacks(), Recorder.named("RMM"), warning);
    }

    private void add(String line) {
        if (line.isEmpty()) {
            return;
        }
        String[] row = line.split(",", -1);
        if (row.length < COLUMNS) {
            throw new IllegalArgumentException("it has " + row.length + " columns, not " + COLUMNS);
        }
        long nanos = nanos(row[1]);
        Kind kind = KINDS.get(row[2]);
        if (kind == null) {
            return;
        }
        if (events.size() == Trace.MAX_ROWS) {
            throw new IllegalArgumentException("there are more than " + Trace.MAX_ROWS + " events");
        }
        long pointer = pointer("pointer", row[3].replace("(nil)", "0"));
        long stream = pointer("stream", row[5]);
        if (stream < 0) {
            throw new IllegalArgumentException("'" + row[5] + "' is not a stream");
        }
        events.add(new ForeignEvent(
                kind, pointer, number("size", row[4]), stream, 0, number("thread", row[0]), nanos, CallStacks.NONE));
    }

    private static long number(String what, String text) {
        if (!NUMBER.matcher(text).matches() || Long.parseLong(text) > Trace.MAX_BLOCK_BYTES) {
            throw new IllegalArgumentException("'" + text + "' is not a " + what);
        }
        return Long.parseLong(text);
    }

    private static long pointer(String what, String text) {
        Matcher digits = POINTER.matcher(text);
        if (!digits.matches()) {
            throw new IllegalArgumentException("'" + text + "' is not a " + what);
        }
        return Long.parseUnsignedLong(digits.group(1), 16);
    }

    /// Returns the time since the first row. Rows of several threads may stand in a slightly wrong order, so only a
    /// jump of half a day passes midnight.
    private long nanos(String time) {
        Matcher parts = TIME.matcher(time);
        if (!parts.matches()) {
            throw new IllegalArgumentException("'" + time + "' is not a time");
        }
        long fraction = Long.parseLong(
                parts.group(4) + "0".repeat(NANO_DIGITS - parts.group(4).length()));
        long nanos = Duration.ofHours(Long.parseLong(parts.group(1)))
                .plusMinutes(Long.parseLong(parts.group(2)))
                .plusSeconds(Long.parseLong(parts.group(3)))
                .plusNanos(fraction)
                .toNanos();
        if (firstNanos < 0) {
            firstNanos = lastNanos = nanos;
        }
        days += nanos < lastNanos - DAY_NANOS / 2 ? 1 : nanos > lastNanos + DAY_NANOS / 2 ? -1 : 0;
        lastNanos = nanos;
        return Math.max(0, days * DAY_NANOS + nanos - firstNanos);
    }
}
