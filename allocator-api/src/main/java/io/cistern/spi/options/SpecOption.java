package io.cistern.spi.options;

import io.cistern.errors.ConfigurationException;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/// One option of an allocator or a segment source: its key, what it takes, and what it means. Declared once, by
/// [#of] or as a constant of a class that extends this; specs, code, messages and reference tables all read it
/// there.
///
/// Immutable; any thread.
///
/// @param <T> the type of its value
public class SpecOption<T> {
    /// What a yes or no takes.
    protected static final String FLAG = "`true`, `false`";

    /// Readers of plain values.
    protected static final Reader<String> TEXT = AllocatorOptions::text;

    /// A number of bytes.
    protected static final Reader<Long> BYTES = AllocatorOptions::bytes;

    /// From 0 to 1.
    protected static final Reader<Double> FRACTION = AllocatorOptions::fraction;

    /// Yes or no.
    protected static final Reader<Boolean> YES_OR_NO = AllocatorOptions::flag;

    /// A reader of an enum's constants, written as their `toString` has it.
    protected static <E extends Enum<E>> Reader<E> wordOf(Class<E> type) {
        return new Words<>(type);
    }

    private record Words<E extends Enum<E>>(Class<E> type) implements Reader<E> {
        @Override
        public Optional<E> read(AllocatorOptions options, String key) {
            return options.choice(key, type);
        }
    }

    private final String owner;
    private final String key;
    private final String legal;
    private final String usual;
    private final String meaning;
    private final Reader<T> reader;
    private final Function<T, List<String>> writer;

    /// Reads the value of a key.
    ///
    /// @param <T> the type of the value
    public interface Reader<T> {
        /// The value, or empty if the key is not given.
        ///
        /// @throws ConfigurationException if it is of another type
        Optional<T> read(AllocatorOptions options, String key);
    }

    /// Declares one whose values are written as their `toString` has them. Texts are Markdown.
    ///
    /// @param owner the allocator's name, for messages
    /// @param key the key
    /// @param legal what it takes
    /// @param usual what holds where it is not given
    /// @param meaning what it does
    /// @param reader how it is read: `AllocatorOptions::bytes`
    public static <T> SpecOption<T> of(
            String owner, String key, String legal, String usual, String meaning, Reader<T> reader) {
        return new SpecOption<>(owner, key, legal, usual, meaning, reader, SpecOption::text);
    }

    /// Declares one. Texts are Markdown.
    ///
    /// @param owner the allocator's name, for messages
    /// @param legal what it takes
    /// @param usual what holds where it is not given
    /// @param meaning what it does
    /// @param writer a value as specs have it: one text, or those of a list
    protected SpecOption(
            String owner,
            String key,
            String legal,
            String usual,
            String meaning,
            Reader<T> reader,
            Function<T, List<String>> writer) {
        this.owner = owner;
        this.key = key;
        this.legal = legal;
        this.usual = usual;
        this.meaning = meaning;
        this.reader = reader;
        this.writer = writer;
    }

    /// A value as its `toString` has it: the writer of most options.
    protected static List<String> text(Object value) {
        return List.of(value.toString());
    }

    /// The key.
    public final String key() {
        return key;
    }

    /// What it takes, for people.
    public final String legal() {
        return legal;
    }

    /// What holds where it is not given, for people.
    public final String usual() {
        return usual;
    }

    /// What it does, for people.
    public final String meaning() {
        return meaning;
    }

    /// Reads the value, if there is one.
    ///
    /// @throws ConfigurationException if it is of another type; says what is legal
    public final Optional<T> read(AllocatorOptions options) {
        try {
            return reader.read(options, key);
        } catch (ConfigurationException bad) {
            String message = String.valueOf(bad.getMessage());
            throw saysWhatIsLegal(message) ? bad : new ConfigurationException(message + legalText(), bad);
        }
    }

    /// A value as specs have it.
    public final List<String> write(T value) {
        return writer.apply(value);
    }

    /// What to throw for a value of the right type that is not legal.
    public final ConfigurationException illegal(Object value) {
        return new ConfigurationException(
                "option '" + key + "' of '" + owner + "': " + value + " is not legal" + legalText());
    }

    /// Whether what the reader said of the type is all that is to be said.
    private boolean saysWhatIsLegal(String message) {
        for (String part : plainLegal().split(", ", -1)) {
            if (!message.contains(part)) {
                return false;
            }
        }
        return true;
    }

    private String legalText() {
        return "; legal: " + plainLegal();
    }

    private String plainLegal() {
        return legal.replace("`", "");
    }

    /// A table for a reference page, in Markdown, a line an option.
    public static String table(List<? extends SpecOption<?>> options) {
        StringBuilder table = new StringBuilder("| key | legal | without it | meaning |\n|---|---|---|---|\n");
        for (SpecOption<?> option : options) {
            table.append("| `").append(option.key()).append("` | ").append(option.legal());
            table.append(" | ").append(option.usual()).append(" | ").append(option.meaning());
            table.append(" |\n");
        }
        return table.toString();
    }

    /// The key.
    @Override
    public final String toString() {
        return key;
    }
}
