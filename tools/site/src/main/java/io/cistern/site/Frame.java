package io.cistern.site;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.commonmark.renderer.html.HtmlRenderer;

/// Puts the frame around each page's text: the head, the navigation to other pages, the end.
final class Frame {
    /// From the site's root.
    static final Path STYLE = Path.of("style.css");

    /// From the site's root.
    static final Path SCRIPT = Path.of("search.js");

    /// From the site's root; exists only if the Javadoc was made.
    static final Path API = Path.of("api", "index.html");

    private final Navigation navigation;
    private final boolean hasApi;
    private final String template;

    Frame(Navigation navigation, boolean hasApi) throws IOException {
        this.navigation = navigation;
        this.hasApi = hasApi;
        this.template = resource("page.html");
    }

    static String resource(String name) throws IOException {
        try (InputStream in = Frame.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IOException("no resource " + name);
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /// @param file the site's file, from its root
    String around(Path file, String title, String text) {
        return template.replace("{title}", escaped(title))
                .replace("{style}", SiteFiles.link(file, STYLE, ""))
                .replace("{script}", SiteFiles.link(file, SCRIPT, ""))
                .replace("{root}", "../".repeat(file.getNameCount() - 1))
                .replace("{home}", SiteFiles.link(file, Path.of("index.html"), ""))
                .replace("{navigation}", menu(file))
                .replace("{text}", text);
    }

    private String menu(Path file) {
        StringBuilder html = new StringBuilder();
        for (Navigation.Group group : navigation.groups()) {
            html.append("<h2>").append(escaped(group.title())).append("</h2>\n<ul>\n");
            for (Navigation.Entry entry : group.entries()) {
                Path to = SiteFiles.of(
                        entry.target().file(), isFolder(entry.target().file()));
                html.append(entry(file, to, entry.title()));
            }
            html.append("</ul>\n");
        }
        if (hasApi) {
            html.append("<h2>Reference</h2>\n<ul>\n")
                    .append(entry(file, API, "Javadoc"))
                    .append("</ul>\n");
        }
        return html.toString();
    }

    private static boolean isFolder(Path file) {
        return !file.getFileName().toString().contains(".");
    }

    private static String entry(Path from, Path to, String title) {
        return "<li><a href=\"%s\"%s>%s</a></li>\n"
                .formatted(
                        SiteFiles.link(from, to, ""), from.equals(to) ? " aria-current=\"page\"" : "", escaped(title));
    }

    static String escaped(String text) {
        return HtmlRenderer.builder().build().render(new org.commonmark.node.Text(text));
    }
}
