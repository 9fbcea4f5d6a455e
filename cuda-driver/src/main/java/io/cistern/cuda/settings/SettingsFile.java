package io.cistern.cuda.settings;

import java.io.IOException;
import java.io.Reader;
import java.io.Serial;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/// A file of settings that was read.
///
/// @param entries keys and values; empty if the file can't be used
/// @param problems human-readable problems of the file
record SettingsFile(Map<String, String> entries, List<String> problems) {
    /// Hundreds of times the size of all settings.
    private static final int MAX_BYTES = 1 << 20;

    /// Reads a file. Problems are reported in the result, not thrown.
    static SettingsFile read(Settings.Value named) {
        try {
            return parse(named, text(Path.of(named.text())));
        } catch (RefusedFileException e) {
            return bad(named, String.valueOf(e.getMessage()));
        } catch (InvalidPathException e) {
            return bad(named, e.getReason());
        } catch (IOException | IllegalArgumentException e) {
            return bad(named, "can't be read: " + e);
        }
    }

    private static String text(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(TrustedFiles.read(new TrustedFiles().requireFile(file), MAX_BYTES));
        CharBuffer text = CharBuffer.allocate(bytes.limit());
        boolean isUtf8 =
                !StandardCharsets.UTF_8.newDecoder().decode(bytes, text, true).isError();
        text.flip();
        if (!isUtf8) {
            throw new RefusedFileException("is not UTF-8 in line "
                    + (text.chars().filter(c -> c == '\n').count() + 1));
        }
        return withoutMark(text.toString()).replace("\r\n", "\n");
    }

    /// Some editors write U+FEFF before the first line. It would become an invisible part of the first key.
    private static String withoutMark(String text) {
        return text.startsWith("\uFEFF") ? text.substring(1) : text;
    }

    private static SettingsFile parse(Settings.Value named, String text) throws IOException {
        OnceProperties properties = new OnceProperties();
        Lines lines = new Lines(text);
        try {
            properties.load(lines);
        } catch (IllegalArgumentException e) {
            throw new RefusedFileException(
                    "has an escape in line " + (lines.begun - 1) + " that is not \\u and four digits");
        }
        Map<String, String> entries = new TreeMap<>();
        properties.stringPropertyNames().forEach(key -> entries.put(key, properties.getProperty(key, "")));
        return new SettingsFile(
                entries,
                properties.twice.stream()
                        .map(key -> named.text() + ": " + key + " is set twice")
                        .toList());
    }

    private static SettingsFile bad(Settings.Value named, String what) {
        return new SettingsFile(Map.of(), List.of(named.source() + ": " + named.text() + " " + what));
    }

    /// Hands out one line at a time, so that its number is known when a line is refused.
    private static final class Lines extends Reader {
        private final String text;
        private int position;
        /// The number of lines requested, including the end. [Properties] requests one more than it has
        /// parsed.
        private int begun;

        Lines(String text) {
            this.text = text;
        }

        @Override
        public int read(char[] to, int offset, int length) {
            boolean atEnd = position == text.length();
            begun += atEnd || position == 0 || text.charAt(position - 1) == '\n' ? 1 : 0;
            if (atEnd) {
                return -1;
            }
            int end = text.indexOf('\n', position) + 1;
            int count = Math.min(length, (end == 0 ? text.length() : end) - position);
            text.getChars(position, position + count, to, offset);
            position += count;
            return count;
        }

        @Override
        public void close() {}
    }

    /// Remembers keys that are set twice; [Properties] would silently keep the last value.
    private static final class OnceProperties extends Properties {
        @Serial
        private static final long serialVersionUID = 1L;

        @SuppressWarnings("serial") // never serialised
        private final List<String> twice = new ArrayList<>();

        @Override
        public synchronized Object put(Object key, Object value) {
            if (containsKey(key)) {
                twice.add(String.valueOf(key));
            }
            return super.put(key, value);
        }
    }
}
