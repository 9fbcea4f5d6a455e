package io.cistern.cuda.settings;

import java.io.IOException;
import java.io.Serial;
import java.io.StringReader;
import java.nio.ByteBuffer;
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
/// @param problems problems of the file, for people
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
        byte[] bytes = TrustedFiles.read(new TrustedFiles().requireFile(file), MAX_BYTES);
        return StandardCharsets.UTF_8
                .newDecoder()
                .decode(ByteBuffer.wrap(bytes))
                .toString();
    }

    private static SettingsFile parse(Settings.Value named, String text) throws IOException {
        OnceProperties properties = new OnceProperties();
        properties.load(new StringReader(text));
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
