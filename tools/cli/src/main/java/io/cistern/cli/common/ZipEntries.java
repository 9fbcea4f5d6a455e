package io.cistern.cli.common;

import java.io.BufferedInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/// Finds the recording in a zip archive.
final class ZipEntries {
    private static final Set<Content> RECORDINGS =
            Set.of(Content.PICKLE, Content.JSON, Content.TRACE, Content.RMM_LOG, Content.GZIP);
    /// The one pickle of what `torch.save` writes; tensors beside it may begin with any byte.
    private static final String SAVED_BY_TORCH = "/data.pkl";

    private static final int MOST_NAMED = 3;

    private ZipEntries() {}

    /// Returns the content of the only recording. It is copied first: the directory is at the end of a zip archive, and
    /// the file may be a pipe.
    ///
    /// @throws InputException unless there is exactly one
    static InputStream recording(String file, InputStream in) throws InputException, IOException {
        Path copy = Files.createTempFile("cistern", ".zip");
        try {
            Files.copy(in, copy, StandardCopyOption.REPLACE_EXISTING);
            ZipFile zip = new ZipFile(copy.toFile());
            try {
                return new BufferedInputStream(new OfEntry(zip, only(file, zip)));
            } catch (IOException | InputException e) {
                zip.close();
                throw e;
            }
        } finally {
            Files.delete(copy);
        }
    }

    private static ZipEntry only(String file, ZipFile zip) throws InputException, IOException {
        List<ZipEntry> files = new ArrayList<>();
        List<ZipEntry> recordings = new ArrayList<>();
        for (ZipEntry entry : zip.stream().filter(each -> !each.isDirectory()).toList()) {
            files.add(entry);
            try (InputStream in = new BufferedInputStream(zip.getInputStream(entry))) {
                if (RECORDINGS.contains(Content.of(in))) {
                    recordings.add(entry);
                }
            }
        }
        List<ZipEntry> saved = files.stream()
                .filter(entry -> entry.getName().endsWith(SAVED_BY_TORCH))
                .toList();
        List<ZipEntry> found = saved.isEmpty() ? recordings : saved;
        if (found.size() != 1) {
            throw new InputException(
                    file,
                    found.isEmpty()
                            ? "is a zip archive without a recording; it holds " + names(files)
                            : "is a zip archive of " + found.size() + " recordings, " + names(found)
                                    + "; unpack it, and name one");
        }
        return found.getFirst();
    }

    private static String names(List<ZipEntry> entries) {
        return entries.isEmpty()
                ? "nothing"
                : entries.stream().limit(MOST_NAMED).map(ZipEntry::getName).collect(Collectors.joining(", "))
                        + (entries.size() > MOST_NAMED ? ", …" : "");
    }

    private static final class OfEntry extends FilterInputStream {
        private final ZipFile zip;

        OfEntry(ZipFile zip, ZipEntry entry) throws IOException {
            super(zip.getInputStream(entry));
            this.zip = zip;
        }

        @Override
        public void close() throws IOException {
            super.close();
            zip.close();
        }
    }
}
