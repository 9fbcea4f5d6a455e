package io.cistern.cli.torch;

import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Reads a pickle of dictionaries, lists, tuples, texts, numbers and truth values: what a snapshot consists of. It
/// knows all protocols, 0 to 5.
///
/// A pickle is a program, for a machine with a stack, that can create objects of any class. This one refuses the
/// instructions that do, so a file that nobody trusts may be read. Memory grows with the bytes that were read,
/// never with a number in the file. Each error names the byte.
///
/// A snapshot has millions of small dictionaries with the same keys, and of lists with the same frames. So
/// dictionaries become [Dictionary], which share their keys, and lists become [Items], which share what they hold once
/// they are complete. Whole numbers become `Long`, tuples lists that can't change.
final class PickleReader {
    /// Far longer than any name, setting or annotation.
    private static final int MAX_TEXT_BYTES = 1 << 20;

    /// More than any dictionary of a snapshot has.
    private static final int MAX_ENTRIES = 1 << 10;
    /// Larger dictionaries do not share their names.
    private static final int MAX_SHARED_NAMES = 32;
    /// Longer lists do not share what they hold.
    private static final int MAX_SHARED_ITEMS = 256;

    private static final Pattern ESCAPE = Pattern.compile("\\\\(x\\p{XDigit}{2}|u\\p{XDigit}{4}|([\\\\'\"]))");

    private static final int MAX_NUMBER_BYTES = 255;
    private static final int MAX_DIGITS = 3 * MAX_NUMBER_BYTES;
    private static final int END = -1;

    /// Python's `None`.
    private static final Object NONE = new Object();

    private final String file;
    private final InputStream in;
    private final ByteBuffer buffer =
            ByteBuffer.allocate(1 << 16).order(ByteOrder.LITTLE_ENDIAN).flip();
    /// The bytes of the file that are no longer in the buffer.
    private long passed;

    private List<Object> stack = new ArrayList<>();
    /// The stack below each mark that is open, the last one first.
    private final Deque<List<Object>> outer = new ArrayDeque<>();

    /// Values by their numbers, which Python gives in order.
    private final List<Object> memo = new ArrayList<>();
    /// Values with other numbers.
    private final Map<Long, Object> sparseMemo = new HashMap<>();

    private final Map<String, String> keys = new HashMap<>();
    private final Map<List<String>, List<String>> shapes = new HashMap<>();
    private final Map<Items, Items> shared = new HashMap<>();

    /// A dictionary: names and their values.
    static final class Dictionary {
        /// The same list for all dictionaries with these names.
        private List<String> names = List.of();
        private @Nullable Object[] values = {};

        static Dictionary of(String name, Object value) {
            Dictionary fields = new Dictionary();
            fields.names = List.of(name);
            fields.values = new Object[] {value};
            return fields;
        }

        @Nullable
        Object get(String name) {
            int index = names.indexOf(name);
            return index < 0 ? null : values[index];
        }

        List<String> names() {
            return names;
        }
    }

    /// A list that grows. Two are equal if they hold the same objects.
    static final class Items {
        private Object[] values = {};
        private int count;

        List<Object> list() {
            return Arrays.asList(values).subList(0, count);
        }

        /// Returns an object that lists with the same content share, once they are complete.
        Object content() {
            return values;
        }

        @Override
        @SuppressWarnings("ReferenceEquality") // Python wrote each frame once; to compare them would take long.
        public boolean equals(@Nullable Object other) {
            if (!(other instanceof Items items) || items.count != count) {
                return false;
            }
            for (int i = 0; i < count; i++) {
                if (values[i] != items.values[i]) {
                    return false;
                }
            }
            return true;
        }

        @Override
        public int hashCode() {
            int hash = count;
            for (int i = 0; i < count; i++) {
                hash = 31 * hash + System.identityHashCode(values[i]);
            }
            return hash;
        }
    }

    PickleReader(String file, InputStream in) {
        this.file = file;
        this.in = in;
    }

    /// Returns the pickled value.
    ///
    /// @throws InputException if the bytes are not a pickle, or hold something else than data
    Object read() throws InputException {
        for (int opcode = next(); opcode != '.'; opcode = next()) {
            execute(opcode);
        }
        return pop();
    }

    private void execute(int opcode) throws InputException {
        switch (opcode) {
            case 0x80 -> next(); // PROTO
            case 0x95 -> number(Long.BYTES); // FRAME: its length only saves reads
            case '(' -> mark();
            case '0' -> pop();
            case '1' -> above();
            case '2' -> push(top());
            case '}' -> push(new Dictionary());
            case ']' -> push(new Items());
            case 'a' -> append(take(1));
            case 'e' -> append(above());
            case 's' -> set(take(2));
            case 'u' -> set(above());
            case 'd' -> dictionary(above());
            case 'l' -> list(above());
            case ')' -> push(List.of());
            case 0x85, 0x86, 0x87 -> tuple(take(opcode - 0x84)); // TUPLE1 to TUPLE3
            case 't' -> tuple(above());
            case 0x94 -> store(memo.size() + sparseMemo.size(), top()); // MEMOIZE
            case 'p' -> store(decimal(), top());
            case 'q' -> store(next(), top());
            case 'r' -> store(number(Integer.BYTES), top());
            case 'g' -> recall(decimal());
            case 'h' -> recall(next());
            case 'j' -> recall(number(Integer.BYTES));
            case 'c' -> throw ofObjects(line(MAX_TEXT_BYTES), line(MAX_TEXT_BYTES)); // GLOBAL
            case 0x93 -> { // STACK_GLOBAL
                Object name = pop();
                throw ofObjects(pop(), name);
            }
            default -> push(scalar(opcode));
        }
    }

    private Object scalar(int opcode) throws InputException {
        return switch (opcode) {
            case 'N' -> NONE;
            case 0x88 -> true;
            case 0x89 -> false;
            case 'K' -> (long) next();
            case 'M' -> number(Short.BYTES);
            case 'J' -> (long) (int) number(Integer.BYTES);
            case 'I', 'L' -> whole(line(MAX_DIGITS + 2));
            case 0x8a -> signed(next()); // LONG1
            case 0x8b -> signed(number(Integer.BYTES)); // LONG4
            case 'F' -> fraction(line(64));
            case 'G' -> Double.longBitsToDouble(Long.reverseBytes(number(Double.BYTES)));
            case 'S' -> quoted(line(MAX_TEXT_BYTES));
            case 'V' -> escaped(line(MAX_TEXT_BYTES));
            case 'U', 'C', 0x8c -> text(next()); // SHORT_BINSTRING, -BYTES, -UNICODE
            case 'T', 'B', 'X' -> text(number(Integer.BYTES));
            case 0x8d, 0x8e -> text(number(Long.BYTES)); // BINUNICODE8, BINBYTES8
            default -> throw error("instruction 0x" + Integer.toHexString(opcode) + ", which no snapshot has");
        };
    }

    /// Returns a number in digits, or a truth value of old pickles.
    private Object whole(String digits) throws InputException {
        if (digits.equals("00") || digits.equals("01")) {
            return digits.equals("01");
        }
        String bare = digits.endsWith("L") ? digits.substring(0, digits.length() - 1) : digits;
        try {
            return narrowed(new BigInteger(bare));
        } catch (NumberFormatException e) {
            throw error("'" + digits + "' is not a number");
        }
    }

    private Double fraction(String digits) throws InputException {
        try {
            return Double.parseDouble(digits);
        } catch (NumberFormatException e) {
            throw error("'" + digits + "' is not a number");
        }
    }

    private long decimal() throws InputException {
        return whole(line(MAX_DIGITS)) instanceof Long number ? number : 0;
    }

    private String quoted(String line) throws InputException {
        if (line.length() < 2 || line.charAt(0) != line.charAt(line.length() - 1)) {
            throw error("a text without quotes around it");
        }
        return escaped(line.substring(1, line.length() - 1));
    }

    /// Replaces what old pickles write for letters beyond ASCII, and for quotes.
    private static String escaped(String text) {
        return ESCAPE.matcher(text).replaceAll(escape -> {
            String letter = escape.group(2);
            String hex = escape.group(1);
            return Matcher.quoteReplacement(
                    letter != null ? letter : Character.toString((char) Integer.parseInt(hex.substring(1), 16)));
        });
    }

    /// Returns the bytes up to the end of the line.
    private String line(int most) throws InputException {
        StringBuilder line = new StringBuilder();
        for (int c = next(); c != '\n'; c = next()) {
            if (line.length() == most) {
                throw error("a line of more than " + most + " bytes");
            }
            line.append((char) c);
        }
        return line.toString().stripTrailing();
    }

    private void push(Object value) {
        stack.add(value);
    }

    private void mark() {
        outer.push(stack);
        stack = new ArrayList<>();
    }

    /// Takes the last mark away, and the values above it.
    private Object[] above() throws InputException {
        if (outer.isEmpty()) {
            throw error("the end of a list that did not begin");
        }
        Object[] values = stack.toArray();
        stack = outer.pop();
        return values;
    }

    private Object[] take(int count) throws InputException {
        need(count);
        List<Object> last = stack.subList(stack.size() - count, stack.size());
        Object[] values = last.toArray();
        last.clear();
        return values;
    }

    private void need(int count) throws InputException {
        if (stack.size() < count) {
            throw error("values are missing");
        }
    }

    private Object pop() throws InputException {
        need(1);
        return stack.removeLast();
    }

    private Object top() throws InputException {
        need(1);
        return stack.getLast();
    }

    private void tuple(Object[] values) {
        push(List.of(values));
    }

    private void list(Object[] values) {
        Items items = new Items();
        items.values = values;
        items.count = values.length;
        push(items);
    }

    private void dictionary(Object[] parts) throws InputException {
        Dictionary fields = new Dictionary();
        push(fields);
        put(fields, parts);
    }

    private void append(Object[] parts) throws InputException {
        int count = parts.length;
        if (!(top() instanceof Items items)) {
            throw error("an element is added to a value that is not a list");
        }
        if (items.count == 0) {
            items.values = parts;
            items.count = count;
            share(items);
            return;
        }
        if (items.count + count > items.values.length) { // A copy, since others may share these.
            items.values = Arrays.copyOf(items.values, Math.max(items.count + count, items.count + items.count / 2));
        }
        System.arraycopy(parts, 0, items.values, items.count, count);
        items.count += count;
    }

    /// Lets a list have the array of an earlier one with the same content.
    private void share(Items items) {
        if (items.count > 0 && items.count <= MAX_SHARED_ITEMS && items.values[0] instanceof Dictionary) {
            Items known = shared.get(items);
            if (known != null) {
                items.values = known.values;
            } else {
                Items copy = new Items();
                copy.values = items.values;
                copy.count = items.count;
                shared.put(copy, copy);
            }
        }
    }

    private void set(Object[] parts) throws InputException {
        if (!(top() instanceof Dictionary fields)) {
            throw error("an entry is added to a value that is not a dictionary");
        }
        put(fields, parts);
    }

    private void put(Dictionary fields, Object[] parts) throws InputException {
        if (parts.length % 2 != 0) {
            throw error("a key without a value");
        }
        if (fields.names.size() + parts.length / 2 > MAX_ENTRIES) {
            throw error("a dictionary of more than " + MAX_ENTRIES + " entries");
        }
        List<String> names = new ArrayList<>(fields.names.size() + parts.length / 2);
        names.addAll(fields.names);
        @Nullable Object[] values = Arrays.copyOf(fields.values, names.size() + parts.length / 2);
        int count = names.size();
        for (int i = 0; i < parts.length; i += 2) {
            String name = key(parts[i]);
            int known = names.indexOf(name);
            if (known < 0) {
                names.add(name);
                values[count++] = parts[i + 1];
            } else {
                values[known] = parts[i + 1];
            }
        }
        fields.values = count == values.length ? values : Arrays.copyOf(values, count);
        fields.names = count > MAX_SHARED_NAMES ? names : shapes.computeIfAbsent(names, List::copyOf);
    }

    /// Returns a key as a text. Keys are few, so each is there once.
    private String key(Object key) throws InputException {
        if (!(key instanceof String || key instanceof Long)) {
            throw error("a key that is neither a text nor a whole number");
        }
        return keys.computeIfAbsent(key.toString(), name -> name);
    }

    private void store(long index, Object value) {
        if (index == memo.size()) {
            memo.add(value);
        } else if (index >= 0 && index < memo.size()) {
            memo.set((int) index, value);
        } else {
            sparseMemo.put(index, value);
        }
    }

    private void recall(long index) throws InputException {
        Object value = index >= 0 && index < memo.size() ? memo.get((int) index) : sparseMemo.get(index);
        if (value == null) {
            throw error("value " + index + " is used before it was stored");
        }
        push(value);
    }

    private Number signed(long byteCount) throws InputException {
        if (byteCount < 0 || byteCount > MAX_NUMBER_BYTES) {
            throw error("a number of " + byteCount + " bytes");
        }
        int count = (int) byteCount;
        if (count > Long.BYTES) {
            return large(count);
        }
        int unused = Long.SIZE - count * Byte.SIZE;
        return count == 0 ? 0L : number(count) << unused >> unused;
    }

    /// Returns a number that may have more than 64 bits, such as a hash that PyTorch's compiler notes.
    private Number large(int byteCount) throws InputException {
        fill(byteCount);
        byte[] bigEndian = new byte[byteCount];
        for (int i = byteCount - 1; i >= 0; i--) {
            bigEndian[i] = buffer.get();
        }
        return narrowed(new BigInteger(bigEndian));
    }

    private static Number narrowed(BigInteger number) {
        return number.bitLength() < Long.SIZE ? (Number) number.longValue() : number;
    }

    /// Reads a text piece by piece, so that memory grows with the file.
    private String text(long byteCount) throws InputException {
        if (byteCount < 0 || byteCount > MAX_TEXT_BYTES) {
            throw error("a text of " + Long.toUnsignedString(byteCount) + " bytes");
        }
        int count = (int) byteCount;
        if (count <= buffer.capacity()) {
            fill(count);
            String read = new String(buffer.array(), buffer.position(), count, StandardCharsets.UTF_8);
            buffer.position(buffer.position() + count);
            return read;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        while (bytes.size() < count) {
            fill(1);
            int more = Math.min(buffer.remaining(), count - bytes.size());
            bytes.write(buffer.array(), buffer.position(), more);
            buffer.position(buffer.position() + more);
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }

    /// Returns a number of at most eight bytes, the lowest first.
    private long number(int byteCount) throws InputException {
        fill(byteCount);
        if (byteCount == Integer.BYTES) { // Most bytes of a snapshot name frames by such numbers.
            return buffer.getInt() & 0xffff_ffffL;
        }
        long number = 0;
        for (int i = 0; i < byteCount; i++) {
            number |= (buffer.get() & 0xffL) << (Byte.SIZE * i);
        }
        return number;
    }

    private int next() throws InputException {
        fill(1);
        return buffer.get() & 0xff;
    }

    /// Makes sure that this many bytes of the file are in the buffer.
    private void fill(int count) throws InputException {
        if (buffer.remaining() >= count) {
            return;
        }
        passed += buffer.position();
        buffer.compact();
        try {
            while (buffer.position() < count) {
                int read = in.read(buffer.array(), buffer.position(), buffer.remaining());
                if (read == END) {
                    throw new InputException(file, "the file is cut off at byte " + (passed + buffer.position()));
                }
                buffer.position(buffer.position() + read);
            }
        } catch (EOFException e) {
            throw new InputException(file, InputFile.why(e));
        } catch (IOException e) {
            throw unreadable(passed, InputFile.why(e));
        }
        buffer.flip();
    }

    private InputException ofObjects(Object module, Object name) {
        return new InputException(
                file, "is a pickle, but not a PyTorch snapshot: it makes an object, " + module + "." + name);
    }

    private InputException error(String what) {
        return unreadable(passed + buffer.position(), what);
    }

    private InputException unreadable(long at, String what) {
        return new InputException(file, "is not a pickle that can be read: at byte " + at + ": " + what);
    }
}
