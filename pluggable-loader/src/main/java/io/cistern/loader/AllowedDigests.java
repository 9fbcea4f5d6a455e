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
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Which contents plug-ins may have: SHA-256 digests, in the format of `sha256sum`, of which the names are ignored.
/// Without a list every content is allowed; with one that can't be read, none.
///
/// @param source where the list was named, for people
/// @param digests in lower-case hexadecimal; null allows all
/// @param problem why the list can't be used
record AllowedDigests(String source, @Nullable Set<String> digests, Optional<String> problem) {
    /// More than ten thousand plug-ins.
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
        for (String line : list.lines().toList()) {
            Matcher form = pattern.matcher(line.strip());
            if (form.matches()) {
                digests.add(form.group(1).toLowerCase(Locale.ROOT));
            } else if (!line.isBlank() && !line.startsWith("#")) {
                return none(source, "has a line that sha256sum would not print: " + line);
            }
        }
        return new AllowedDigests(source, Set.copyOf(digests), Optional.empty());
    }

    /// Why contents are refused, if they are.
    ///
    /// @param contents works out their digest, where a list has to be asked
    Optional<String> refuses(Supplier<String> contents) {
        if (problem.isPresent() || digests == null) {
            return problem;
        }
        String digest = contents.get();
        return digests.contains(digest)
                ? Optional.empty()
                : Optional.of("is not allowed: its SHA-256 is " + digest + ", which is not in " + source);
    }

    /// The SHA-256 digest in lower-case hexadecimal.
    static String of(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // Every Java has it.
        }
    }
}
