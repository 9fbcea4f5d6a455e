package io.cistern.loader;

import io.cistern.cuda.settings.RefusedFileException;
import io.cistern.cuda.settings.Settings;
import io.cistern.cuda.settings.TrustedFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Decides which contents plug-ins may have, by a list of SHA-256 digests in the format of `sha256sum`; names
/// in the list are ignored. Without a list all contents are allowed; if the list can't be read, none are.
///
/// @param source where the list was named, for messages
/// @param digests the allowed digests in lower-case hexadecimal; null allows all
/// @param problem the reason why the list can't be used
record AllowedDigests(String source, @Nullable Set<String> digests, Optional<String> problem) {
    /// Room for more than ten thousand plug-ins.
    private static final int MAX_LIST_BYTES = 1 << 20;

    private static final String LINE = "\\\\?([0-9a-fA-F]{64})(\\s.*)?";

    static AllowedDigests all() {
        return new AllowedDigests("", null, Optional.empty());
    }

    static AllowedDigests read(Settings.Value set) {
        String source = set.source() + " (" + set.text() + ")";
        try {
            Path file = new TrustedFiles().requireFile(Path.of(set.text()));
            return parse(source, new String(TrustedFiles.read(file, MAX_LIST_BYTES), StandardCharsets.UTF_8));
        } catch (RefusedFileException e) {
            return none(source, String.valueOf(e.getMessage()));
        } catch (IOException | IllegalArgumentException e) {
            return none(source, "can't be read: " + e);
        }
    }

    private static AllowedDigests none(String source, String problem) {
        return new AllowedDigests(source, Set.of(), Optional.of(source + " " + problem));
    }

    private static AllowedDigests parse(String source, String list) {
        Set<String> digests = new HashSet<>();
        Pattern pattern = Pattern.compile(LINE);
        List<String> lines = list.lines().toList();
        for (String line : lines) {
            Matcher form = pattern.matcher(line.strip());
            if (form.matches()) {
                digests.add(form.group(1).toLowerCase(Locale.ROOT));
            } else if (!line.isBlank() && !line.startsWith("#")) {
                return none(
                        source, "has a line that is not in sha256sum's format, number " + (lines.indexOf(line) + 1));
            }
        }
        return new AllowedDigests(source, Set.copyOf(digests), Optional.empty());
    }

    /// Returns the reason why contents are refused, or empty if they are allowed.
    Optional<String> refuses(Supplier<String> contents) {
        if (problem.isPresent() || digests == null) {
            return problem;
        }
        String digest = contents.get();
        return digests.contains(digest)
                ? Optional.empty()
                : Optional.of("is not allowed: its SHA-256 is " + digest + ", which is not in " + source);
    }

    static String of(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // every JVM provides it
        }
    }
}
