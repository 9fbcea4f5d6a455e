package io.cistern.site;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.commonmark.ext.gfm.tables.TableBlock;
import org.commonmark.node.Heading;
import org.commonmark.node.Image;
import org.commonmark.node.Link;
import org.commonmark.node.Node;
import org.commonmark.renderer.NodeRenderer;
import org.commonmark.renderer.html.HtmlNodeRendererContext;
import org.commonmark.renderer.html.HtmlRenderer;

/// Renders a page's text as HTML: headings have anchors, links lead to files of the site, and drawings are part
/// of the page itself, so that their text can be selected.
final class PageHtml {
    private final Path root;
    private final Page page;

    PageHtml(Path root, Page page) {
        this.root = root;
        this.page = page;
    }

    /// Returns the HTML, without the frame of the page.
    String render() {
        return HtmlRenderer.builder()
                .extensions(Markdown.EXTENSIONS)
                .attributeProviderFactory(_ -> this::attributes)
                .nodeRendererFactory(Drawings::new)
                .build()
                .render(page.content())
                .replaceAll("(?s)<!--.*?-->\n?", "")
                .replace("<table>", "<div class=\"table\" tabindex=\"0\"><table>")
                .replace("</table>", "</table></div>");
    }

    /// See [AttributeProvider].
    private void attributes(Node node, String tag, Map<String, String> attributes) {
        switch (node) {
            case Heading heading ->
                attributes.put("id", String.valueOf(page.anchors().get(heading)));
            case Link link -> attributes.put("href", href(link.getDestination()));
            case Image image -> attributes.put("src", href(image.getDestination()));
            case TableBlock _ -> {}
            default -> {}
        }
    }

    private String href(String destination) {
        Target target = Target.of(page.file(), destination);
        if (target.isOutside()) {
            return destination;
        }
        Path from = SiteFiles.of(page.file(), false);
        Path to = SiteFiles.of(target.file(), Files.isDirectory(root.resolve(target.file())));
        return SiteFiles.link(from, to, target.anchor());
    }

    /// Puts SVG files into the page.
    private final class Drawings implements NodeRenderer {
        private final HtmlNodeRendererContext context;

        Drawings(HtmlNodeRendererContext context) {
            this.context = context;
        }

        @Override
        public Set<Class<? extends Node>> getNodeTypes() {
            return Set.of(Image.class);
        }

        @Override
        public void render(Node node) {
            Image image = (Image) node;
            Path file = Target.of(page.file(), image.getDestination()).file();
            if (file.toString().endsWith(".svg")) {
                context.getWriter().raw("<span class=\"figure\">" + read(file) + "</span>");
            } else {
                context.getWriter().tag("img", attributesOf(image), true);
            }
        }

        private Map<String, String> attributesOf(Image image) {
            return Map.of("src", href(image.getDestination()), "alt", Anchors.textOf(image));
        }

        private String read(Path file) {
            try {
                return Files.readString(root.resolve(file)).strip();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
