package io.cistern.cli.report;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.SerializableString;
import com.fasterxml.jackson.core.io.CharacterEscapes;
import com.fasterxml.jackson.core.io.SerializedString;
import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import io.cistern.cli.imports.SnapshotLog;
import io.cistern.cli.torch.TorchSnapshot;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serial;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.List;

/// A snapshot in the form that a page contains.
///
/// @param json its contents without spaces and without any `<`, so that nothing in it can end an HTML element
public record Snapshot(String name, String json) {
    private static final JsonFactory FACTORY =
            new JsonFactoryBuilder().characterEscapes(new ForHtml()).build();

    private static final JSON WRITER = JSON.builder(FACTORY).build();

    /// Reads a Cistern snapshot in JSON.
    ///
    /// @throws InputException if it is not a snapshot
    public static Snapshot read(String file, String name, InputStream in) throws InputException, IOException {
        try (JsonParser parser = FACTORY.createParser(in)) {
            return new Snapshot(name, copy(file, parser));
        }
    }

    /// Returns a PyTorch snapshot, or one in its form.
    ///
    /// @param reason what it shows
    /// @param fit how the program fits
    public static Snapshot of(String name, TorchSnapshot snapshot, String reason, ShownFit fit) throws IOException {
        return new Snapshot(name, WRITER.asString(TorchJson.of(snapshot, reason, fit)));
    }

    /// Returns a snapshot from JSON text.
    ///
    /// @throws InputException if the text is not a snapshot
    public static Snapshot of(String name, String json) throws InputException, IOException {
        try (JsonParser parser = FACTORY.createParser(json)) {
            return new Snapshot(name, copy(name, parser));
        }
    }

    private static String copy(String file, JsonParser parser) throws InputException {
        StringWriter copy = new StringWriter();
        try (JsonGenerator out = FACTORY.createGenerator(copy)) {
            SchemaCopy.copy(file, parser, out);
        } catch (JsonProcessingException e) {
            throw new InputException(file, "is not a snapshot: " + place(parser) + ": " + e.getOriginalMessage());
        } catch (IOException e) {
            throw new InputException(file, place(parser) + ": " + InputFile.why(e));
        }
        return withLeaks(copy.toString());
    }

    /// Adds what looks like a leak in the history, as the last field.
    private static String withLeaks(String json) {
        try {
            List<ShownFit.Leaking> leaks =
                    SnapshotLog.recording(json).map(ShownFit.Leaking::of).orElse(List.of());
            return json.substring(0, json.length() - 1) + ",\"leaks\":"
                    + WRITER.asString(
                            leaks.stream().map(ShownFit.Leaking::fields).toList()) + "}";
        } catch (IOException e) {
            throw new UncheckedIOException(e); // In memory.
        }
    }

    private static String place(JsonParser parser) {
        return "at byte " + parser.currentLocation().getByteOffset();
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
