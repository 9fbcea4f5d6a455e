package io.cistern.spi.options;

import io.cistern.errors.ConfigurationException;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/// One option of an allocator or a segment source: its key, its legal values and its meaning. Each option
/// is declared once, by [#of] or as a constant of a subclass; specs, code, messages and reference tables
/// all use that declaration.
///
/// **Threads.** Immutable; any thread may use it at any time.
///
/// @param <T> the type of the option's value
public class SpecOption<T> {
    /// The legal values of a flag.
    protected static final String FLAG = "`true`, `false`";

    /// Reads a text.
    protected static final Reader<String> TEXT = AllocatorOptions::text;

    /// Reads a number of bytes.
    protected static final Reader<Long> BYTES = AllocatorOptions::bytes;

    /// Reads a fraction from 0 to 1.
    protected static final Reader<Double> FRACTION = AllocatorOptions::fraction;

    /// Reads a flag.
    protected static final Reader<Boolean> YES_OR_NO = AllocatorOptions::flag;

    /// Returns a reader of an enum's constants, each written as its `toString`.
    protected static <E extends Enum<E>> Reader<E> wordOf(Class<E> type) {
        return (options, key) -> options.choice(key, type);
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
        /// Returns the value; empty if the spec does not have the key.
        ///
        /// @throws ConfigurationException if the value is of another type
        Optional<T> read(AllocatorOptions options, String key);
    }

    /// Declares an option whose values are written in specs as their `toString`. `legal`, `usual` and
    /// `meaning` are Markdown.
    ///
    /// @param owner the allocator's name, for messages
    /// @param key the key
    /// @param legal the legal values
    /// @param usual the value or behaviour without the option
    /// @param meaning the effect of the option
    /// @param reader reads the value, for example `AllocatorOptions::bytes`
    public static <T> SpecOption<T> of(
            String owner, String key, String legal, String usual, String meaning, Reader<T> reader) {
        return new SpecOption<>(owner, key, legal, usual, meaning, reader, SpecOption::text);
    }

    /// Declares an option. `legal`, `usual` and `meaning` are Markdown.
    ///
    /// @param owner the allocator's name, for messages
    /// @param legal the legal values
    /// @param usual the value or behaviour without the option
    /// @param meaning the effect of the option
    /// @param writer returns the text of a value in specs, or the texts of a list
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

    /// Returns a value's `toString`, as most options write their values.
    protected static List<String> text(Object value) {
        return List.of(value.toString());
    }

    /// Returns the key.
    public final String key() {
        return key;
    }

    /// Returns a description of the legal values, in Markdown.
    public final String legal() {
        return legal;
    }

    /// Returns a description of the value or behaviour without the option, in Markdown.
    public final String usual() {
        return usual;
    }

    /// Returns a description of the effect, in Markdown.
    public final String meaning() {
        return meaning;
    }

    /// Returns the value; empty if the spec does not have the option.
    ///
    /// @throws ConfigurationException if the value is of another type; the message lists the legal values
    public final Optional<T> read(AllocatorOptions options) {
        try {
            return reader.read(options, key);
        } catch (ConfigurationException bad) {
            String message = String.valueOf(bad.getMessage());
            throw saysWhatIsLegal(message) ? bad : new ConfigurationException(message + legalText(), bad);
        }
    }

    /// Returns the text of a value in specs, or the texts of a list.
    public final List<String> write(T value) {
        return writer.apply(value);
    }

    /// Returns the exception to throw if a value of the right type is invalid.
    public final ConfigurationException illegal(Object value) {
        return new ConfigurationException(
                "option '" + key + "' of '" + owner + "': " + value + " is invalid" + legalText());
    }

    /// Returns whether the reader's message names all legal values already.
    private boolean saysWhatIsLegal(String message) {
        for (String part : plainLegal().split(", ", -1)) {
            if (!message.contains(part)) {
                return false;
            }
        }
        return true;
    }

    private String legalText() {
        return "; valid: " + plainLegal();
    }

    private String plainLegal() {
        return legal.replace("`", "");
    }

    /// Returns a Markdown table for a reference page, with a line for each option.
    public static String table(List<? extends SpecOption<?>> options) {
        StringBuilder table = new StringBuilder("| key | values | default | meaning |\n|---|---|---|---|\n");
        for (SpecOption<?> option : options) {
            table.append("| `").append(option.key()).append("` | ").append(option.legal());
            table.append(" | ").append(option.usual()).append(" | ").append(option.meaning());
            table.append(" |\n");
        }
        return table.toString();
    }

    /// Returns the key.
    @Override
    public final String toString() {
        return key;
    }
}
