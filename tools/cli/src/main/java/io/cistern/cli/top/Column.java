package io.cistern.cli.top;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.WordConverter;
import io.cistern.observability.MemoryFigures.OfAllocator;
import io.cistern.observability.MemoryFigures.TierHits;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A column of the table: its cells, and the order of rows when the table is sorted by it.
@SuppressWarnings("ImmutableEnumChecker") // The functions have no state.
public enum Column {
    MEMORY("memory", Row::memory, Comparator.comparing(Row::memory)),
    GPU("gpu", row -> Integer.toString(row.device()), Comparator.comparingInt(Row::device)),
    ALLOCATOR(
            "allocator",
            row -> (row.figures().current() ? ">" : " ") + row.figures().name(),
            Comparator.comparing(row -> row.figures().name())),
    POOL(
            "pool",
            row -> row.figures().pool(),
            Comparator.comparing(row -> row.figures().pool())),
    LIVE(
            "live",
            row -> String.format(Locale.ROOT, "%,d", row.figures().liveBlocks()),
            largestFirst(row -> row.figures().liveBlocks())),
    ALLOCATIONS("allocs/s", row -> rate(row.allocationsPerSecond()), fastestFirst(Row::allocationsPerSecond)),
    FREES("frees/s", row -> rate(row.freesPerSecond()), fastestFirst(Row::freesPerSecond)),
    REQUESTED("requested", OfAllocator::requestedBytes),
    PEAK("peak", OfAllocator::requestedPeakBytes),
    RESERVED("reserved", OfAllocator::reservedBytes),
    LARGEST("max free", OfAllocator::largestFreeBytes),
    STRANDED("stranded", OfAllocator::strandedBytes),
    HITS(
            "hits %",
            row -> row.figures().tiers().stream()
                    .map(tier -> tier.hitPercent() < 0 ? "-" : String.valueOf(tier.hitPercent()))
                    .collect(Collectors.joining("/")),
            largestFirst(row -> row.figures().tiers().stream()
                    .mapToInt(TierHits::hitPercent)
                    .findFirst()
                    .orElse(-1)));

    /// Left out of a narrow table, the first one first.
    static final List<Column> DISPENSABLE = List.of(FREES, PEAK, HITS, LARGEST, LIVE, STRANDED, POOL);

    private final String heading;
    private final @Nullable ToLongFunction<OfAllocator> bytes;
    private final Function<Row, String> text;
    private final Comparator<Row> order;

    Column(String heading, Function<Row, String> text, Comparator<Row> order) {
        this.heading = heading;
        this.bytes = null;
        this.text = text;
        this.order = order;
    }

    Column(String heading, ToLongFunction<OfAllocator> bytes) {
        this.heading = heading;
        this.bytes = bytes;
        this.text = _ -> "";
        this.order = largestFirst(row -> bytes.applyAsLong(row.figures()));
    }

    private static Comparator<Row> largestFirst(ToLongFunction<Row> number) {
        return Comparator.comparingLong(number).reversed();
    }

    private static Comparator<Row> fastestFirst(Function<Row, OptionalDouble> rate) {
        return Comparator.<Row>comparingDouble(row -> rate.apply(row).orElse(-1))
                .reversed();
    }

    private static String rate(OptionalDouble perSecond) {
        return perSecond.isPresent() ? String.format(Locale.ROOT, "%,.0f", perSecond.getAsDouble()) : "-";
    }

    /// Returns the column of a name on the command line, or of a heading.
    ///
    /// @throws picocli.CommandLine.TypeConversionException if there is none; it names those nearest
    public static Column named(String text) {
        return Arrays.stream(values())
                .filter(each -> each.heading.equalsIgnoreCase(text))
                .findFirst()
                .orElseGet(() -> new WordConverter<>(Column.class).convert(text));
    }

    static String bytes(long bytes) {
        return bytes < 0 ? "-" : ByteSize.format(bytes);
    }

    String heading() {
        return heading;
    }

    /// Returns whether cells are bytes, in a unit that the heading names.
    boolean isBytes() {
        return bytes != null;
    }

    /// Returns a number of bytes of a row; negative if it is unknown.
    long bytes(Row row) {
        return bytes == null ? -1 : bytes.applyAsLong(row.figures());
    }

    /// @param unit bytes of the unit of the columns that are bytes
    String cell(Row row, long unit) {
        if (bytes == null) {
            return text.apply(row);
        }
        return bytes(row) < 0 ? "-" : String.format(Locale.ROOT, "%.2f", (double) bytes(row) / unit);
    }

    Comparator<Row> order() {
        return order;
    }

    /// Returns the next column to the right; the last column is followed by the first.
    ///
    /// @param steps to the right; to the left if below 0
    Column neighbour(int steps) {
        List<Column> all = List.of(values());
        return all.get(Math.floorMod(all.indexOf(this) + steps, all.size()));
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
