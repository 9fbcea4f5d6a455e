package io.cistern.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.settings.Setting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// What an editor completes in application.properties: all settings, with their words.
final class ConfigurationMetadataTests {
    private static final Path FILE = Path.of("src/main/resources/META-INF/spring-configuration-metadata.json");
    private static final Pattern WORD = Pattern.compile("`([a-z]+)`");

    /// A property of the file.
    ///
    /// @param otherwise its default as JSON; empty without one
    /// @param words the values that an editor offers
    /// @param isOpen whether other values are legal, too
    private record Property(
            String name, String type, String description, String otherwise, List<String> words, boolean isOpen) {
        String json() {
            String last = otherwise.isEmpty() ? "" : ",\n      \"defaultValue\": " + otherwise;
            return "    {\n      \"name\": \"" + name + "\",\n      \"type\": \"" + type
                    + "\",\n      \"description\": \"" + description + "\"" + last + "\n    }";
        }

        String hint() {
            String values = words.stream()
                    .map(word -> "        { \"value\": \"" + word + "\" }")
                    .collect(Collectors.joining(",\n"));
            return "    {\n      \"name\": \"" + name + "\",\n      \"values\": [\n" + values + "\n      ]"
                    + (isOpen ? ",\n      \"providers\": [{ \"name\": \"any\" }]" : "") + "\n    }";
        }
    }

    /// With `-Dcistern.docs.write=true` it writes the file.
    @Test
    void theFileHasAllSettings() throws IOException {
        if (Boolean.getBoolean("cistern.docs.write")) {
            Files.writeString(FILE, json());
        }
        assertThat(FILE).hasContent(json());
    }

    private static String json() {
        List<Property> all = new ArrayList<>();
        Stream.of(Setting.values())
                .filter(setting -> !setting.isFamily())
                .map(ConfigurationMetadataTests::property)
                .forEach(all::add);
        all.add(new Property(
                "cistern.device",
                "java.util.Map<java.lang.Integer,java.util.Map<java.lang.String,java.lang.String>>",
                "The settings allocator and limit of one device, by its ordinal.",
                "",
                List.of(),
                true));
        all.add(new Property(
                "cistern.define",
                "java.util.Map<java.lang.String,java.lang.String>",
                "Specs of allocators, such as shared libraries, by names of your own.",
                "",
                List.of(),
                true));
        all.add(new Property(
                ContextSettings.SLOW_ALLOCATIONS,
                "java.time.Duration",
                "Minimum duration of a slow allocation, for example 1ms; without it, none are counted.",
                "",
                List.of(),
                true));
        all.add(new Property(
                "management.health.cistern.enabled",
                "java.lang.Boolean",
                "Whether to report the health of device memory.",
                "true",
                List.of(),
                true));
        return """
                {
                  "properties": [
                %s
                  ],
                  "hints": [
                %s
                  ]
                }
                """.formatted(
                        all.stream().map(Property::json).collect(Collectors.joining(",\n")),
                        all.stream()
                                .filter(property -> !property.words().isEmpty())
                                .map(Property::hint)
                                .collect(Collectors.joining(",\n")));
    }

    private static Property property(Setting setting) {
        boolean isList = setting == Setting.OBSERVE;
        boolean isNumber = setting == Setting.LIMIT;
        List<String> words = words(isList ? setting.meaning() : setting.legal());
        boolean isSwitch = words.equals(List.of("true", "false"));
        String otherwise = String.join("", words(setting.otherwise()));
        String description = setting.meaning().replace("`", "");
        return new Property(
                setting.key(),
                isSwitch ? "java.lang.Boolean" : isList ? "java.util.List<java.lang.String>" : "java.lang.String",
                (setting.meaning().startsWith("`") ? description : capitalized(description))
                        + (words.isEmpty() || isNumber ? " (" + setting.legal().replace("`", "") + ")" : "") + ".",
                otherwise.isEmpty() || isSwitch ? otherwise : "\"" + otherwise + "\"",
                isSwitch ? List.of() : words,
                isList || isNumber || setting == Setting.DRIVER);
    }

    private static String capitalized(String text) {
        return Character.toUpperCase(text.charAt(0)) + text.substring(1);
    }

    private static List<String> words(String text) {
        return WORD.matcher(text)
                .results()
                .map(ConfigurationMetadataTests::word)
                .toList();
    }

    private static String word(MatchResult found) {
        return found.group(1);
    }
}
