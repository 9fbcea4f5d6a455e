package io.cistern.caching.options;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class OptionReferenceTest {
    private static final Path PAGE = Path.of("..", "docs", "caching-options.md");

    /// With `-Dcistern.docs.write=true` it writes the page.
    @Test
    void theReferencePageIsUpToDate() throws IOException {
        if (Boolean.getBoolean("cistern.docs.write")) {
            Files.writeString(PAGE, OptionReference.markdown());
        }
        assertThat(PAGE).hasContent(OptionReference.markdown());
    }
}
