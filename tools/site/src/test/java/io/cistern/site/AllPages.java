package io.cistern.site;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;

/// The pages of this working tree, read once for all tests.
final class AllPages {
    static final Repository REPOSITORY = Repository.here();
    private static final List<Page> PAGES = read();

    private AllPages() {}

    private static List<Page> read() {
        try {
            return REPOSITORY.pages();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static List<Page> all() {
        return PAGES;
    }

    static List<Path> files() {
        return PAGES.stream().map(Page::file).toList();
    }

    static Page at(Path file) {
        return PAGES.stream()
                .filter(page -> page.file().equals(file))
                .findFirst()
                .orElseThrow();
    }
}
