package io.cistern.cuda.settings;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class SettingsPageTests {
    private static final Path PAGE = Path.of("..", "docs", "settings.md");

    private static final String HEAD = """
            # Settings

            <!-- Made by SettingsPageTests from Setting. With -Dcistern.docs.write=true it writes the page. -->

            These settings are made outside a program. The first source that has a value decides:

            1. **code**, such as `Allocators.setCurrent("async")`;
            2. a system **property**: `-Dcistern.allocator=async`;
            3. a variable of the **environment**, in capitals with `_` for `.`: `CISTERN_ALLOCATOR=async`;
            4. a line of the **file** of Java properties that `cistern.config` or `CISTERN_CONFIG` names;
            5. the default in the table.

            The properties of a [Spring Boot](spring-boot.md) application come between 3 and 4, its command-line
            arguments before 2. Within a source, a value for one device comes before the value for all; a blank value counts as
            not set. `./cistern doctor --verbose` prints each value with its source.

            An unknown key, an invalid value, a key that a file sets twice, and a file that others may write to are errors. If the
            program chooses its allocators itself, they only cause warnings, except for a value that the program needs.

            **Bytes** are written alike in all settings, [options](options.md) and commands: `1048576`, `512m`, `0.5GiB`. Units
            are powers of 1024, in any letter case; `KB`, `MB` and `GB` are refused as ambiguous. A share of a device's memory is
            `0.5` or `50%`; `1` is one byte, `1.0` the whole device.

            N is a device's ordinal, and NAME a name of your own: lower-case letters, digits, `-` and `_`.

            | key | values | default | meaning |
            |---|---|---|---|
            """;

    /// With `-Dcistern.docs.write=true` it writes the page.
    @Test
    void theReferencePageIsUpToDate() throws IOException {
        if (Boolean.getBoolean("cistern.docs.write")) {
            Files.writeString(PAGE, markdown());
        }
        assertThat(PAGE).hasContent(markdown());
    }

    private static String markdown() {
        StringBuilder page = new StringBuilder(HEAD);
        for (Setting setting : Setting.values()) {
            page.append("| `%s` | %s | %s | %s |%n"
                    .formatted(setting.key(), setting.legal(), setting.otherwise(), setting.meaning()));
        }
        return page.toString();
    }
}
