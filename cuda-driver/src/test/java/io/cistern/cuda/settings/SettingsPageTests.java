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

            Made from `Setting` by `SettingsPageTests`; see there for how to make it anew.

            Everything that can be set from outside a program, in one order: what **code** says comes first; then a system
            **property** (`-Dcistern.allocator=async`); then a variable of the **environment** (`CISTERN_ALLOCATOR=async`:
            capitals, `_` for `.`); then a line of the **file** that `cistern.config` or `CISTERN_CONFIG` names
            (`cistern.allocator=async`, in the format of Java properties); and where nobody says anything, what the table
            says. What is set for one device comes before what is set for all, of the same origin. A blank value counts as
            not set. A key that is none of these, a file that others may write to, and a key that a file sets twice are
            errors, with the nearest key or the cure; where the program chooses its allocators itself, they are warnings, once
            in a process. An invalid value is an error that lists the valid ones; `cistern.leaks`, `cistern.observe` and those
            that are `true` or `false` warn instead and count as not set. `cistern doctor` prints every value with its source.

            N is a device's ordinal, NAME a name of your own: lower-case letters, digits, `-` and `_`.

            | key | legal | without it | meaning |
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
