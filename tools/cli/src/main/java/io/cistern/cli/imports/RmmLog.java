package io.cistern.cli.imports;

import de.siegmar.fastcsv.reader.CsvParseException;
import de.siegmar.fastcsv.reader.CsvReader;
import de.siegmar.fastcsv.reader.NamedCsvRecord;
import io.cistern.cli.imports.ForeignEvent.Kind;
import io.cistern.cli.trace.TraceException;
import java.io.Reader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Reads the log of RMM's `logging_resource_adaptor`: CSV with the columns
/// `Thread,Time,Action,Pointer,Size,Stream`, for one device. Times are times of day, so they start
/// again at midnight.
final class RmmLog {
    static final String HEADER = "Thread,Time,Action,Pointer,Size,Stream";

    private static final Pattern TIME = Pattern.compile("(\\d+):(\\d+):(\\d+)[.:](\\d{1,9})");
    private static final long DAY_NANOS = Duration.ofDays(1).toNanos();
    private static final int NANO_DIGITS = 9;

    private final String file;
    private long firstNanos = -1;
    private long lastNanos;

    private RmmLog(String file) {
        this.file = file;
    }

    /// Reads a log.
    ///
    /// @param file its name, for errors
    /// @throws TraceException if the file is not an RMM log, or has no rows
    static ForeignLog read(String file, Reader in) throws TraceException {
        RmmLog log = new RmmLog(file);
        List<ForeignEvent> events = new ArrayList<>();
        try {
            for (NamedCsvRecord row : CsvReader.builder().ofNamedCsvRecord(in)) {
                log.add(row, events);
            }
        } catch (CsvParseException e) {
            throw new TraceException(file, String.valueOf(e.getMessage()));
        }
        if (events.isEmpty()) {
            throw new TraceException(file, "has no rows after the header");
        }
        return new ForeignLog(List.of(), events);
    }

    private void add(NamedCsvRecord row, List<ForeignEvent> events) throws TraceException {
        try {
            Kind kind = switch (row.getField("Action")) {
                case "allocate" -> Kind.ALLOCATED;
                case "free", "deallocate" -> Kind.FREED;
                case "allocate failure" -> Kind.REFUSED;
                default -> null;
            };
            if (kind != null) {
                events.add(new ForeignEvent(
                        kind,
                        Long.decode(row.getField("Pointer").replace("(nil)", "0")),
                        Long.parseLong(row.getField("Size")),
                        Long.decode(row.getField("Stream")),
                        0,
                        Long.parseLong(row.getField("Thread")),
                        nanos(row.getField("Time"))));
            }
        } catch (NumberFormatException | NoSuchElementException e) {
            throw new TraceException(file, row.getStartingLineNumber(), "is no row of RMM's log: " + e.getMessage());
        }
    }

    private long nanos(String time) {
        Matcher parts = TIME.matcher(time);
        if (!parts.matches()) {
            throw new NumberFormatException("'" + time + "' is no time");
        }
        long fraction = Long.parseLong(
                parts.group(4) + "0".repeat(NANO_DIGITS - parts.group(4).length()));
        long nanos = Duration.ofHours(Long.parseLong(parts.group(1)))
                .plusMinutes(Long.parseLong(parts.group(2)))
                .plusSeconds(Long.parseLong(parts.group(3)))
                .plusNanos(fraction)
                .toNanos();
        firstNanos = firstNanos < 0 ? nanos : firstNanos;
        long passed = nanos - firstNanos;
        while (passed < lastNanos - DAY_NANOS / 2) {
            passed += DAY_NANOS;
        }
        lastNanos = Math.max(lastNanos, passed);
        return Math.max(0, passed);
    }
}
