package io.cistern.site;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;

/// Which words are English, as SCOWL lists them, or the field's, as `words.txt` does.
final class Spelling {
    private static final Pattern WORD =
            Pattern.compile("(?<![\\p{L}\\p{N}_.@/¤'’-])\\p{L}[\\p{L}'’]*(?![\\p{L}\\p{N}_@/¤])(?!\\.\\p{L})");
    private static final Pattern NAME = Pattern.compile(".+\\p{Lu}.*|\\p{Lu}");

    private final Set<String> words = new HashSet<>();

    Spelling() {
        read(unpacked("english.txt.gz"));
        read(resource("words.txt"));
    }

    private void read(InputStream list) {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(list, StandardCharsets.UTF_8))) {
            lines.lines().filter(line -> !line.startsWith("#")).forEach(words::add);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static InputStream unpacked(String name) {
        try {
            return new GZIPInputStream(resource(name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static InputStream resource(String name) {
        InputStream in = Spelling.class.getResourceAsStream(name);
        if (in == null) {
            throw new IllegalStateException("no resource " + name);
        }
        return in;
    }

    /// Returns the words of a piece of prose that are in no list. Letters alone, as of units, and
    /// names with capitals inside are not looked at.
    List<String> unknown(String prose) {
        return WORD.matcher(prose)
                .results()
                .map(MatchResult::group)
                .map(word -> word.replace('’', '\'').replaceFirst("'s?$", ""))
                .filter(word -> word.length() > 1 && !NAME.matcher(word).matches() && !isKnown(word))
                .toList();
    }

    /// The plural of a word that is known is known.
    private boolean isKnown(String word) {
        String small = word.toLowerCase(Locale.ROOT);
        return words.contains(word)
                || words.contains(small)
                || small.endsWith("s") && words.contains(small.substring(0, small.length() - 1));
    }
}
