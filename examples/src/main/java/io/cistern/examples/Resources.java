package io.cistern.examples;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/// Reads texts that lie beside the examples.
final class Resources {
    private Resources() {}

    static String text(String name) throws IOException {
        try (InputStream text = Resources.class.getResourceAsStream(name)) {
            if (text == null) {
                throw new FileNotFoundException(name);
            }
            return new String(text.readAllBytes(), StandardCharsets.US_ASCII);
        }
    }
}
