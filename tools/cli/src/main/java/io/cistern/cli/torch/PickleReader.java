package io.cistern.cli.torch;

import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Reads a pickle of dictionaries, lists, tuples, texts, numbers and truth values: what a snapshot consists of.
///
/// A pickle is a program, for a machine with a stack, that can create objects of any class. This one refuses the
/// instructions that do, so a file that nobody trusts may be read. Memory grows with the bytes that were read,
/// never with a number in the file. Each error names the byte.
///
/// Dictionaries become maps, lists and tuples become lists, whole numbers become `Long`.
final class PickleReader {
    /// Far longer than any name, setting or annotation.
    private static final int MAX_TEXT_BYTES = 1 << 20;

    private static final int END = -1;

    /// Marks on the stack where the parts of a list, tuple or dictionary begin.
    private static final Object MARK = new Object();

    /// Python's `None`.
    private static final Object NONE = new Object();

    private final String file;
    private final InputStream in;
    private final List<Object> stack = new ArrayList<>();
    private final Map<Long, Object> memo = new HashMap<>();
    private long position;

    /// @param file its name, for errors
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
            case '(' -> stack.add(MARK);
            case '0' -> pop();
            case '}' -> stack.add(new LinkedHashMap<>());
            case ']' -> stack.add(new ArrayList<>());
            case 'a' -> append(List.of(pop()));
            case 'e' -> append(popToMark());
            case 's' -> set(last(2));
            case 'u' -> set(popToMark());
            case ')' -> stack.add(List.of());
            case 0x85, 0x86, 0x87 -> stack.add(last(opcode - 0x84)); // TUPLE1 to TUPLE3
            case 't', 'l' -> stack.add(popToMark());
            case 0x94 -> memo.put((long) memo.size(), top()); // MEMOIZE
            case 'q' -> memo.put((long) next(), top());
            case 'r' -> memo.put(number(Integer.BYTES), top());
            case 'h' -> recall(next());
            case 'j' -> recall(number(Integer.BYTES));
            default -> stack.add(scalar(opcode));
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
            case 'I' -> line();
            case 0x8a -> signed(next()); // LONG1
            case 0x8b -> signed(number(Integer.BYTES)); // LONG4
            case 'G' -> Double.longBitsToDouble(Long.reverseBytes(number(Double.BYTES)));
            case 0x8c -> text(next()); // SHORT_BINUNICODE
            case 'X' -> text(number(Integer.BYTES));
            case 0x8d -> text(number(Long.BYTES)); // BINUNICODE8
            default -> throw error("instruction 0x" + Integer.toHexString(opcode) + ", which no snapshot has");
        };
    }

    /// Reads the decimal digits of a large number, or a truth value of old pickles.
    private Object line() throws InputException {
        StringBuilder text = new StringBuilder();
        for (int c = next(); c != '\n'; c = next()) {
            if (text.length() == 20) {
                throw error("a number of more than 20 digits");
            }
            text.append((char) c);
        }
        try {
            return Long.parseLong(text.toString());
        } catch (NumberFormatException e) {
            throw error("'" + text + "' is not a number of 64 bits");
        }
    }

    private void append(List<Object> parts) throws InputException {
        list(top()).addAll(parts);
    }

    @SuppressWarnings("unchecked") // Only this class made it.
    private List<Object> list(Object value) throws InputException {
        if (value instanceof ArrayList<?> list) {
            return (List<Object>) list;
        }
        throw error("something is added to a value that is not a list");
    }

    private void set(List<Object> parts) throws InputException {
        if (!(top() instanceof LinkedHashMap<?, ?> map)) {
            throw error("an entry is added to a value that is not a dictionary");
        }
        if (parts.size() % 2 != 0) {
            throw error("a key without a value");
        }
        @SuppressWarnings("unchecked") // Only this class made it.
        Map<Object, Object> entries = (Map<Object, Object>) map;
        for (int i = 0; i < parts.size(); i += 2) {
            Object key = parts.get(i);
            if (!(key instanceof String || key instanceof Long)) { // The hash of others could take for ever.
                throw error("a key that is neither a text nor a whole number");
            }
            entries.put(key, parts.get(i + 1));
        }
    }

    private void recall(long index) throws InputException {
        Object value = memo.get(index);
        if (value == null) {
            throw error("value " + index + " is used before it was stored");
        }
        stack.add(value);
    }

    private List<Object> popToMark() throws InputException {
        int mark = stack.lastIndexOf(MARK);
        if (mark < 0) {
            throw error("the end of a list that did not begin");
        }
        List<Object> parts = last(stack.size() - mark - 1);
        stack.removeLast();
        return parts;
    }

    private List<Object> last(int count) throws InputException {
        if (stack.size() < count) {
            throw error("values are missing");
        }
        List<Object> last = stack.subList(stack.size() - count, stack.size());
        List<Object> copy = new ArrayList<>(last);
        last.clear();
        return copy;
    }

    private Object pop() throws InputException {
        Object top = top();
        stack.removeLast();
        return top;
    }

    private Object top() throws InputException {
        if (stack.isEmpty()) {
            throw error("a value is missing");
        }
        return stack.getLast();
    }

    private Long signed(long byteCount) throws InputException {
        if (byteCount > Long.BYTES) {
            throw error("a number of " + byteCount + " bytes");
        }
        int unused = Long.SIZE - (int) byteCount * Byte.SIZE;
        return byteCount == 0 ? 0 : number((int) byteCount) << unused >> unused;
    }

    private String text(long byteCount) throws InputException {
        if (byteCount < 0 || byteCount > MAX_TEXT_BYTES) {
            throw error("a text of " + Long.toUnsignedString(byteCount) + " bytes");
        }
        return new String(bytes((int) byteCount), StandardCharsets.UTF_8);
    }

    /// Returns a number of at most eight bytes, the lowest first.
    private long number(int byteCount) throws InputException {
        ByteBuffer number = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        number.put(bytes(byteCount));
        return number.getLong(0);
    }

    private byte[] bytes(int count) throws InputException {
        try {
            byte[] bytes = in.readNBytes(count);
            position += bytes.length;
            if (bytes.length < count) {
                throw error("the file ends too early");
            }
            return bytes;
        } catch (IOException e) {
            throw error(InputFile.why(e));
        }
    }

    private int next() throws InputException {
        int next;
        try {
            next = in.read();
        } catch (IOException e) {
            throw error(InputFile.why(e));
        }
        if (next == END) {
            throw error("the file ends too early");
        }
        position++;
        return next;
    }

    private InputException error(@Nullable String what) {
        return new InputException(file, "is not a pickle that can be read: at byte " + position + ": " + what);
    }
}
