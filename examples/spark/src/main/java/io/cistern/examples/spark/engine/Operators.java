package io.cistern.examples.spark.engine;

import io.cistern.CudaStream;
import io.cistern.pressure.Retry;
import io.cistern.pressure.SpillStore;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The operators of a column engine, on one stream. Each one allocates its temporaries and its result from
/// the current allocator or the scope's, and frees the temporaries in stream order when it ends. A result
/// lives until the end of the [stage][#stage] that made it.
///
/// **Threads.** One thread at a time.
public final class Operators implements AutoCloseable {
    static final int TILE = 1024;
    static final int THREADS = 256;

    /// The most groups that [#sums] adds up without atomic operations.
    private static final int FEW = 16;

    /// Marks a free slot of a table. Rows with this key have a slot of their own.
    private static final long FREE_KEY = Long.MIN_VALUE;

    /// Replaces a column that a kernel does not need.
    private static final long NONE = 0;

    private final EngineKernels kernels;
    private final CudaStream stream;
    private final int device;
    private final @Nullable SpillStore spills;
    private final Deque<List<Column>> stages = new ArrayDeque<>();

    /// Creates the operators of a stream.
    ///
    /// @param device the stream's device
    /// @param spills the store to which results may be spilled; operators that run out of memory then run
    ///     again. With null, results stay on the device, and operators throw when memory runs out
    public Operators(CudaStream stream, int device, @Nullable SpillStore spills) {
        this.stream = stream;
        this.device = device;
        this.spills = spills;
        kernels = EngineKernels.of(stream.memory(), device);
        stages.push(new ArrayList<>());
    }

    CudaStream stream() {
        return stream;
    }

    int device() {
        return device;
    }

    EngineKernels kernels() {
        return kernels;
    }

    @Nullable
    SpillStore spills() {
        return spills;
    }

    /// Runs part of a plan, and frees all columns that it made but the one that it returns.
    public Column stage(Supplier<Column> plan) {
        return stage(plan, List::of);
    }

    /// Runs part of a plan, and frees all columns that it made but those that are kept of its result.
    public <R> R stage(Supplier<R> plan, Function<R, List<Column>> kept) {
        List<Column> made = new ArrayList<>();
        stages.push(made);
        List<Column> left = List.of();
        try {
            R result = plan.get();
            left = kept.apply(result);
            return result;
        } finally {
            stages.pop();
            made.removeAll(left);
            made.forEach(Column::close);
            stages.element().addAll(left);
        }
    }

    private <R> R operate(Function<Operation, R> operator) {
        return spills == null ? once(operator) : Retry.<R, RuntimeException>withRetry(() -> once(operator));
    }

    private <R> R once(Function<Operation, R> operator) {
        try (Operation operation = new Operation(this)) {
            R result = operator.apply(operation);
            operation.succeeded();
            return result;
        }
    }

    /// Runs an operator with one result, which the stage owns.
    private Column column(Function<Operation, Column> operator) {
        Column result = operate(operator);
        stages.element().add(result);
        return result;
    }

    /// Runs a kernel whose last argument is its result.
    ///
    /// @param width the bytes of each item of the result
    private Column mapped(String kernel, long count, int width, Object... inputs) {
        return column(run -> {
            Column out = run.result(count, width);
            List<Object> arguments = new ArrayList<>(List.of(inputs));
            arguments.add(out);
            run.launch(kernel, count, arguments.toArray());
            return out;
        });
    }

    private static Object orNone(@Nullable Column column) {
        return column == null ? NONE : column;
    }

    /// Draws numbers: `base + drawn((first + i) / divisor, salt, range)`, and another column's if there is one.
    public Column draw(
            long first, long count, long divisor, long salt, long range, long base, @Nullable Column before) {
        return mapped("draw", count, Long.BYTES, count, first, divisor, salt, range, base, orNone(before));
    }

    /// Draws texts made of the first `range` of the given words.
    ///
    /// @param first the number of the first row
    public Strings drawTexts(long first, long count, List<String> words, long perRow, long range, long salt) {
        byte[] table = new byte[16 * words.size()];
        for (int i = 0; i < words.size(); i++) {
            byte[] letters = words.get(i).getBytes(StandardCharsets.UTF_8);
            table[16 * i] = (byte) letters.length;
            System.arraycopy(letters, 0, table, 16 * i + 1, letters.length);
        }
        Column packed = upload(MemorySegment.ofArray(table), 1);
        Column lengths =
                mapped("word_lengths", count, Long.BYTES, packed, packed.count(), count, first, perRow, range, salt);
        return strings(
                lengths,
                (run, offsets, bytes) -> run.launch(
                        "write_words",
                        count,
                        packed,
                        packed.count(),
                        count,
                        first,
                        perRow,
                        range,
                        salt,
                        offsets,
                        bytes.count(),
                        bytes));
    }

    /// Writes the bytes of texts whose offsets are known.
    private interface Texts {
        void write(Operation run, Column offsets, Column bytes);
    }

    private Strings strings(Column lengths, Texts texts) {
        Column offsets = column(run -> {
            Column out = run.result(lengths.count() + 1, Long.BYTES);
            run.scan(NONE, run.address(lengths), lengths.count(), run.address(out));
            return out;
        });
        Column bytes = column(run -> {
            Column out = run.result(run.read(run.address(offsets) + lengths.byteSize()), 1);
            texts.write(run, offsets, out);
            return out;
        });
        return new Strings(offsets, bytes);
    }

    /// Returns the numbers from 0 on.
    public Column positions(long count) {
        return mapped("positions", count, Long.BYTES, count, count);
    }

    private Column upload(MemorySegment from, int width) {
        return column(run -> {
            Column out = run.result(from.byteSize() / width, width);
            run.upload(from, out);
            return out;
        });
    }

    /// Returns a column's words on the host, after the work so far.
    public long[] read(Column from) {
        long[] words = new long[(int) from.count()];
        byte[] bytes = operate(run -> run.download(from));
        MemorySegment.ofArray(words).copyFrom(MemorySegment.ofArray(bytes));
        return words;
    }

    private List<String> read(Strings from) {
        long[] offsets = read(from.offsets());
        byte[] bytes = operate(run -> run.download(from.bytes()));
        return IntStream.range(0, offsets.length - 1)
                .mapToObj(i -> new String(
                        bytes, (int) offsets[i], (int) (offsets[i + 1] - offsets[i]), StandardCharsets.UTF_8))
                .toList();
    }

    /// Flags the values from `low` to `high`, or the others if not `wanted`.
    ///
    /// @param before flags that must hold, too
    public Column between(Column values, long low, long high, boolean wanted, @Nullable Column before) {
        return mapped("between", values.count(), 1, values, values.count(), low, high, wanted, orNone(before));
    }

    /// Flags the values from `low` to `high`.
    public Column between(Column values, long low, long high) {
        return between(values, low, high, true, null);
    }

    /// Flags the rows in which one value is less than another.
    public Column less(Column a, Column b) {
        return stage(() -> between(calculate(a, Calculation.FROM, b), 1, Long.MAX_VALUE));
    }

    /// Flags the rows whose bit is 1.
    ///
    /// @param bits the bytes of a column of bits
    /// @param first the first row's bit
    /// @param before flags that must hold, too
    public Column valid(Column bits, long first, long count, @Nullable Column before) {
        return mapped("valid", count, 1, bits, bits.count(), first, count, orNone(before));
    }

    /// Flags the texts that match a pattern of `LIKE` with `%`, or the others if not `wanted`.
    ///
    /// @param before flags that must hold, too
    public Column like(Strings texts, String pattern, boolean wanted, @Nullable Column before) {
        byte[] bytes = pattern.getBytes(StandardCharsets.UTF_8);
        return stage(() -> mapped(
                "like",
                texts.count(),
                1,
                texts.offsets(),
                texts.bytes(),
                texts.count(),
                texts.bytes().count(),
                upload(MemorySegment.ofArray(bytes), 1),
                (long) bytes.length,
                wanted,
                orNone(before)));
    }

    /// Returns the rows that have flags, in their order.
    public Column select(Column flags) {
        return column(run -> {
            long count = flags.count();
            long positions = run.words(count + 1);
            long selected = run.scan(run.address(flags), NONE, count, positions);
            Column out = run.result(selected, Long.BYTES);
            run.launch("select", count, flags, positions, count, selected, out);
            return out;
        });
    }

    /// Returns the values of some rows; `missing` for row -1.
    public Column gather(Column values, Column rows, long missing) {
        return mapped("gather", rows.count(), Long.BYTES, values, values.count(), rows, rows.count(), missing);
    }

    /// Returns the values of some rows.
    public Column gather(Column values, Column rows) {
        return gather(values, rows, 0);
    }

    private Strings gather(Strings texts, Column rows) {
        long count = rows.count();
        Column lengths = mapped("string_lengths", count, Long.BYTES, texts.offsets(), texts.count(), rows, count);
        return strings(
                lengths,
                (run, offsets, bytes) -> run.launch(
                        "copy_strings",
                        count,
                        texts.offsets(),
                        texts.bytes(),
                        texts.count(),
                        texts.bytes().count(),
                        rows,
                        count,
                        offsets,
                        bytes.count(),
                        bytes));
    }

    /// The operations of [#calculate].
    public enum Calculation {
        PLUS(0),
        /// The second one minus the first.
        FROM(1),
        TIMES(2),
        DIVIDED_BY(3);

        private final long ofKernel;

        Calculation(long ofKernel) {
            this.ofKernel = ofKernel;
        }
    }

    /// Calculates with two columns.
    public Column calculate(Column a, Calculation calculation, Column b) {
        return mapped("calculate", a.count(), Long.BYTES, calculation.ofKernel, a, b, 0L, a.count());
    }

    /// Calculates with a column and a number.
    public Column calculate(Column a, Calculation calculation, long b) {
        return mapped("calculate", a.count(), Long.BYTES, calculation.ofKernel, a, NONE, b, a.count());
    }

    /// Joins by a hash table: returns for each key the row that has it among others, or -1.
    ///
    /// @param among keys that occur once each
    public Column match(Column keys, Column among) {
        return column(run -> {
            Table table = new Table(run, among, among.count());
            Column out = run.result(keys.count(), Long.BYTES);
            run.launch(
                    "probe", keys.count(), keys, keys.count(), table.capacity, FREE_KEY, table.keys, table.rows, out);
            return out;
        });
    }

    /// Groups rows by a key, with a hash table.
    ///
    /// @param most the maximum number of distinct keys
    public Groups group(Column keys, long most) {
        Groups groups = operate(run -> {
            Table table = new Table(run, keys, Math.min(most, keys.count()));
            long slots = table.capacity + 1;
            long flags = run.bytes(slots);
            run.launch("between", slots, table.rows, slots, 0L, Long.MAX_VALUE, true, NONE, flags);
            long positions = run.words(slots + 1);
            long count = run.scan(flags, NONE, slots, positions);
            long taken = run.words(count);
            run.launch("select", slots, flags, positions, slots, count, taken);
            Column rows = run.result(count, Long.BYTES);
            run.launch("gather", count, table.rows, slots, taken, count, -1L, rows);
            Column ofRows = run.result(keys.count(), Long.BYTES);
            run.launch("gather", keys.count(), positions, slots, table.slots, keys.count(), -1L, ofRows);
            return new Groups(ofRows, rows);
        });
        stages.element().addAll(groups.columns());
        return groups;
    }

    /// A hash table on the device, with at least twice as many slots as keys, and with a row for each.
    private static final class Table {
        final long capacity;
        final long keys;
        final long slots;
        final long rows;

        Table(Operation run, Column from, long most) {
            long count = from.count();
            capacity = 2 * powerOfTwo(most);
            keys = run.filled(capacity + 1, FREE_KEY);
            slots = run.words(count);
            run.launch("insert", count, from, count, capacity, FREE_KEY, keys, slots);
            rows = run.filled(capacity + 1, -1);
            run.launch("scatter", count, slots, count, capacity + 1, rows);
        }
    }

    private static long powerOfTwo(long least) {
        return least < 2 ? 1 : Long.highestOneBit(least - 1) * 2;
    }

    /// Adds up the values of each group, or counts its rows if there are no values.
    public Column sums(Groups groups, @Nullable Column values) {
        return sums(groups.ofRows(), orNone(values), groups.ofRows().count(), groups.count());
    }

    /// Adds up all values.
    public Column sum(Column values) {
        return sums(NONE, values, values.count(), 1);
    }

    private Column sums(Object groups, Object values, long count, long groupCount) {
        return column(run -> {
            Column out = run.result(groupCount, Long.BYTES);
            run.launch("fill", groupCount, groupCount, 0L, out);
            run.launch(groupCount <= FEW ? "sum_few" : "sum", count, groups, values, count, groupCount, out);
            return out;
        });
    }

    /// Returns the rows sorted by the first key, rows with equal first keys by the second, and so on.
    public Column order(Column... keys) {
        Column rows = sorted(keys[keys.length - 1]);
        for (int i = keys.length - 2; i >= 0; i--) {
            Column key = keys[i];
            Column before = rows;
            rows = stage(() -> gather(before, sorted(gather(key, before))));
        }
        return rows;
    }

    /// Returns the rows in the order of a key; equal ones stay in order.
    private Column sorted(Column key) {
        return column(run -> {
            long count = key.count();
            long size = powerOfTwo(count);
            long rows = run.words(size);
            run.launch("positions", size, size, count, rows);
            long keys = run.words(size);
            run.launch("gather", size, key, count, rows, size, 0L, keys);
            for (long length = 2; length <= size; length *= 2) {
                for (long distance = length / 2; distance > 0; distance /= 2) {
                    run.launch("sort_step", size, keys, rows, size, distance, length);
                }
            }
            Column out = run.result(count, Long.BYTES);
            run.copy(run.address(out), rows, out.byteSize());
            return out;
        });
    }

    /// Returns the first rows of a column.
    public Column first(Column from, long most) {
        return column(run -> {
            Column out = run.result(Math.min(most, from.count()), Long.BYTES);
            run.copy(run.address(out), run.address(from), out.byteSize());
            return out;
        });
    }

    /// Returns the rows of two columns.
    public Column concatenate(Column one, Column other) {
        return column(run -> {
            Column out = run.result(one.count() + other.count(), Long.BYTES);
            run.copy(run.address(out), run.address(one), one.byteSize());
            run.copy(run.address(out) + one.byteSize(), run.address(other), other.byteSize());
            return out;
        });
    }

    /// Copies a column to memory of another owner.
    public void copy(Column from, long target) {
        operate(run -> {
            run.copy(target, run.address(from), from.byteSize());
            return true;
        });
    }

    /// Texts of which few are distinct, as numbers in the order of the texts.
    ///
    /// @param numbers each row's number, from 0
    /// @param texts the text of each number
    public record Dictionary(Column numbers, List<String> texts) {}

    /// Numbers the texts of a column.
    ///
    /// @param most the maximum number of distinct texts
    public Dictionary dictionary(Strings from, long most) {
        return stage(
                () -> {
                    Column hashes = mapped(
                            "hash_strings",
                            from.count(),
                            Long.BYTES,
                            from.offsets(),
                            from.bytes(),
                            from.count(),
                            from.bytes().count());
                    Groups groups = group(hashes, most);
                    List<String> found = read(gather(from, groups.rows()));
                    List<String> texts = found.stream().sorted().toList();
                    long[] ranks = found.stream().mapToLong(texts::indexOf).toArray();
                    Column rankOfGroup = upload(MemorySegment.ofArray(ranks), Long.BYTES);
                    return new Dictionary(gather(rankOfGroup, groups.ofRows()), texts);
                },
                dictionary -> List.of(dictionary.numbers()));
    }

    /// Frees all columns that no stage has freed. The stream stays open.
    @Override
    public void close() {
        stages.forEach(made -> made.forEach(Column::close));
    }
}
