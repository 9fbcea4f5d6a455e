package io.cistern.site;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// Writes all pages as HTML files into a folder, with everything in the repository that they link to.
final class Site {
    private final Path root;
    private final Path out;
    private final Frame frame;
    private final SourceFiles sources;
    private final Deque<Path> linked = new ArrayDeque<>();
    private final Set<Path> done = new HashSet<>();

    private Site(Path root, Path out, Frame frame) {
        this.root = root;
        this.out = out;
        this.frame = frame;
        this.sources = new SourceFiles(root);
    }

    /// @param out the folder, which is created if it does not exist
    /// @param hasApi whether the Javadoc is in the site
    static void make(Repository repository, Path out, boolean hasApi) throws IOException {
        List<Page> pages = repository.pages();
        Page list = pages.stream()
                .filter(page -> page.file().equals(Repository.LIST))
                .findFirst()
                .orElseThrow();
        Site site = new Site(repository.root(), out, new Frame(Navigation.of(list), hasApi));
        site.write(Frame.STYLE, Frame.resource("style.css"));
        site.write(Frame.SCRIPT, Frame.resource("search.js"));
        site.write(SearchIndex.FILE, SearchIndex.of(pages));
        for (Page page : pages) {
            site.add(page);
        }
        site.addLinked();
    }

    private void add(Page page) throws IOException {
        done.add(page.file());
        Path file = SiteFiles.of(page.file(), false);
        write(file, frame.around(file, page.title(), new PageHtml(root, page).render()));
        page.targets().stream()
                .filter(target -> !target.isOutside())
                .map(Target::file)
                .forEach(linked::add);
    }

    private void addLinked() throws IOException {
        while (!linked.isEmpty()) {
            Path file = linked.remove();
            if (done.add(file)) {
                addSource(file);
            }
        }
    }

    private void addSource(Path file) throws IOException {
        boolean isFolder = Files.isDirectory(root.resolve(file));
        Path to = SiteFiles.of(file, isFolder);
        if (isFolder) {
            linked.addAll(sources.in(file));
            write(to, frame.around(to, file.toString(), sources.list(file)));
        } else if (SiteFiles.isCopied(file.toString())) {
            Files.createDirectories(out.resolve(to).getParent());
            Files.copy(root.resolve(file), out.resolve(to));
        } else if (file.toString().endsWith(".md")) {
            add(Page.read(root, file));
        } else {
            write(to, frame.around(to, String.valueOf(file.getFileName()), sources.text(file)));
        }
    }

    private void write(Path file, String text) throws IOException {
        Path to = out.resolve(file);
        Files.createDirectories(to.getParent());
        Files.writeString(to, text);
    }
}
