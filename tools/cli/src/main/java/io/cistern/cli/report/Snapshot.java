package io.cistern.cli.report;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonStreamContext;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.SerializableString;
import com.fasterxml.jackson.core.io.CharacterEscapes;
import com.fasterxml.jackson.core.io.SerializedString;
import io.cistern.cli.common.UsageException;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serial;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/// A snapshot in the form that a page contains.
///
/// @param name the file's name
/// @param json its contents without spaces and without any `<`, so that nothing in it can end an HTML element
public record Snapshot(String name, String json) {
    private static final String FORMAT = "cistern-snapshot";
    private static final int VERSION = 1;

    /// The first byte of a pickle.
    private static final int PICKLE = 0x80;

    private static final JsonFactory JSON =
            new JsonFactoryBuilder().characterEscapes(new ForHtml()).build();

    /// Reads a snapshot.
    ///
    /// @throws UsageException if the file can't be read or is not a snapshot; the message names the file
    static Snapshot read(Path file) {
        try (InputStream bytes = Files.newInputStream(file);
                InputStream in =
                        new BufferedInputStream(file.toString().endsWith(".gz") ? new GZIPInputStream(bytes) : bytes);
                JsonParser parser = JSON.createParser(notPickled(file, in))) {
            return new Snapshot(String.valueOf(file.getFileName()), copy(file, parser));
        } catch (NoSuchFileException e) {
            throw new UsageException(file + ": no such file");
        } catch (JsonProcessingException e) {
            throw new UsageException(file + ": is not a snapshot: " + e.getOriginalMessage());
        } catch (IOException e) {
            throw new UsageException(file + ": can't be read: " + e.getMessage());
        }
    }

    private static InputStream notPickled(Path file, InputStream in) throws IOException {
        in.mark(1);
        if (in.read() == PICKLE) {
            throw new UsageException(file + ": is a pickle, for PyTorch's viewer; report reads snapshots in .json");
        }
        in.reset();
        return in;
    }

    /// Returns a snapshot from JSON text.
    ///
    /// @param name the snapshot's name
    /// @throws IOException if the text is not JSON
    public static Snapshot of(String name, String json) throws IOException {
        try (JsonParser parser = JSON.createParser(json)) {
            return new Snapshot(name, copy(Path.of(name), parser));
        }
    }

    private static String copy(Path file, JsonParser parser) throws IOException {
        StringWriter copy = new StringWriter();
        String format = null;
        String version = null;
        try (JsonGenerator out = JSON.createGenerator(copy)) {
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                if (token.isScalarValue() && isTop(parser.getParsingContext())) {
                    format = "format".equals(parser.currentName()) ? parser.getText() : format;
                    version = "version".equals(parser.currentName()) ? parser.getText() : version;
                }
                out.copyCurrentEvent(parser);
            }
        }
        check(file, format, version);
        return copy.toString();
    }

    private static boolean isTop(JsonStreamContext context) {
        return context.getParent() != null && context.getParent().inRoot();
    }

    private static void check(Path file, @Nullable String format, @Nullable String version) {
        if (!FORMAT.equals(format)) {
            throw new UsageException(file + ": is not a snapshot: it does not say \"format\":\"" + FORMAT + "\"");
        }
        if (!Integer.toString(VERSION).equals(version)) {
            throw new UsageException(
                    file + ": is a snapshot of version " + version + "; this program reads version " + VERSION);
        }
    }

    /// Escapes `<` in addition to JSON's own escapes.
    private static final class ForHtml extends CharacterEscapes {
        @Serial
        private static final long serialVersionUID = 1L;

        @Override
        public int[] getEscapeCodesForAscii() {
            int[] codes = standardAsciiEscapesForJSON();
            codes['<'] = ESCAPE_CUSTOM;
            return codes;
        }

        @Override
        public SerializableString getEscapeSequence(int character) {
            return new SerializedString("\\u003c");
        }
    }
}
