package io.cistern.cli.report;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.cli.common.InputException;
import io.cistern.observability.MemorySnapshot;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Copies a snapshot and checks it against its JSON schema on the way, so that a page's scripts meet nothing else.
/// It knows the keywords that the schema uses. Fields that the schema does not know are copied as they are.
final class SchemaCopy {
    private static final Map<String, Object> SCHEMA = schema();

    private final String file;
    private final JsonParser in;
    private final JsonGenerator out;

    private SchemaCopy(String file, JsonParser in, JsonGenerator out) {
        this.file = file;
        this.in = in;
        this.out = out;
    }

    private static Map<String, Object> schema() {
        try (InputStream in = MemorySnapshot.schema()) {
            return JSON.std.mapFrom(in);
        } catch (IOException e) {
            throw new IllegalStateException(e); // A resource of the program.
        }
    }

    /// Copies the whole input.
    ///
    /// @throws InputException if it is JSON, but not a snapshot
    /// @throws IOException if it is not JSON, or can't be read
    static void copy(String file, JsonParser in, JsonGenerator out) throws InputException, IOException {
        SchemaCopy copy = new SchemaCopy(file, in, out);
        in.nextToken();
        copy.value("it", SCHEMA);
        if (in.nextToken() != null) {
            throw copy.error("something follows its end");
        }
    }

    private void value(String name, Map<?, ?> schema) throws InputException, IOException {
        if (schema.get("$ref") instanceof String reference) {
            value(name, part(part(SCHEMA, "$defs"), reference.substring("#/$defs/".length())));
        } else if (schema.get("oneOf") instanceof List<?> forms) { // Null, or something.
            value(name, (Map<?, ?>) forms.get(in.currentToken() == JsonToken.VALUE_NULL ? 0 : 1));
        } else {
            check(name, schema);
            switch (in.currentToken()) {
                case START_OBJECT -> object(name, schema);
                case START_ARRAY -> array(name, schema);
                default -> out.copyCurrentEvent(in);
            }
        }
    }

    private static Map<?, ?> part(Map<?, ?> schema, String key) {
        return (Map<?, ?>) Objects.requireNonNull(schema.get(key), key);
    }

    private void object(String name, Map<?, ?> schema) throws InputException, IOException {
        Map<?, ?> known = schema.get("properties") instanceof Map<?, ?> properties ? properties : Map.of();
        Set<Object> missing = new HashSet<>(schema.get("required") instanceof List<?> required ? required : List.of());
        out.writeStartObject();
        while (in.nextToken() == JsonToken.FIELD_NAME) {
            String field = in.currentName();
            out.writeFieldName(field);
            in.nextToken();
            missing.remove(field);
            if (known.get(field) instanceof Map<?, ?> its) {
                value("'" + field + "'", its);
            } else if (schema.get("additionalProperties") instanceof Map<?, ?> any) {
                value("'" + field + "'", any);
            } else {
                out.copyCurrentStructure(in);
            }
        }
        if (!missing.isEmpty()) {
            throw error(name + " has no '"
                    + missing.stream()
                            .map(String::valueOf)
                            .min(String::compareTo)
                            .orElseThrow() + "'");
        }
        out.writeEndObject();
    }

    private void array(String name, Map<?, ?> schema) throws InputException, IOException {
        Map<?, ?> each = part(schema, "items");
        out.writeStartArray();
        while (in.nextToken() != JsonToken.END_ARRAY) {
            value("a part of " + name, each);
        }
        out.writeEndArray();
    }

    private void check(String name, Map<?, ?> schema) throws InputException, IOException {
        Object types = schema.get("type");
        String type = type(in.currentToken());
        if (types != null && !types.equals(type) && !(types instanceof List<?> list && list.contains(type))) {
            throw error(name + " is of type " + type + ", not " + types);
        }
        if (schema.get("minimum") instanceof Number least && in.getLongValue() < least.longValue()) {
            throw error(name + " is " + in.getText() + ", less than " + least);
        }
        Object only = schema.get("const");
        if (only != null && !only.toString().equals(in.getText())) {
            throw error(name + " is " + in.getText() + ", not " + only);
        }
        if (schema.get("enum") instanceof List<?> words && !words.contains(in.getText())) {
            throw error(name + " is " + in.getText() + ", not one of " + words);
        }
    }

    private static String type(@Nullable JsonToken token) {
        return switch (token) {
            case START_OBJECT -> "object";
            case START_ARRAY -> "array";
            case VALUE_STRING -> "string";
            case VALUE_NUMBER_INT -> "integer";
            case VALUE_NUMBER_FLOAT -> "number";
            case VALUE_TRUE, VALUE_FALSE -> "boolean";
            case VALUE_NULL -> "null";
            case null, default -> "nothing";
        };
    }

    private InputException error(String what) {
        return new InputException(
                file, "is not a snapshot: at byte " + in.currentLocation().getByteOffset() + ": " + what);
    }
}
