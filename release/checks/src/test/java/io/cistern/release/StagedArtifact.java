package io.cistern.release;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.xml.sax.SAXException;

/// One artifact of a staged release: the files of a version in a folder laid out as a Maven repository.
record StagedArtifact(String name, Path folder, String version) {
    static final Path STAGED = Path.of(System.getProperty("cistern.staged"));
    static final Path STAGED_AGAIN = Path.of(System.getProperty("cistern.staged.again"));
    static final String VERSION = System.getProperty("cistern.staged.version");

    /// All of a release, by name.
    static List<StagedArtifact> all() throws IOException {
        try (Stream<Path> folders = Files.list(STAGED.resolve("io/cistern"))) {
            return folders.sorted()
                    .map(folder -> new StagedArtifact(
                            folder.getFileName().toString(), folder.resolve(VERSION), VERSION))
                    .toList();
        }
    }

    /// The file with this ending after name and version: `.pom`, `-sources.jar`.
    Path file(String ending) {
        return folder.resolve(name + "-" + version + ending);
    }

    boolean isJar() {
        return Files.exists(file(".jar"));
    }

    /// What was published, without signatures and check sums.
    List<Path> published() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> !file.toString().matches(".*\\.(asc|md5|sha1|sha256|sha512)"))
                    .sorted()
                    .toList();
        }
    }

    Element pom() throws IOException {
        try {
            Document document =
                    DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file(".pom").toFile());
            return document.getDocumentElement();
        } catch (ParserConfigurationException | SAXException e) {
            throw new IOException(file(".pom").toString(), e);
        }
    }

    /// The text of the element at this path below the root of the POM, or an empty text.
    String pomText(String... path) throws IOException {
        Element element = pom();
        for (String name : path) {
            Element below = child(element, name);
            if (below == null) {
                return "";
            }
            element = below;
        }
        return element.getTextContent().strip();
    }

    private static Element child(Element parent, String name) {
        for (Node node = parent.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element element && element.getTagName().equals(name)) {
                return element;
            }
        }
        return null;
    }

    @Override
    public String toString() {
        return name;
    }
}
