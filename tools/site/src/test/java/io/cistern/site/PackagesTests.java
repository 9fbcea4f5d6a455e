package io.cistern.site;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.commonmark.node.Code;
import org.junit.jupiter.api.Test;

/// One page lists every package that programs and plug-ins can import.
final class PackagesTests {
    private static final Path PAGE = Path.of("docs/packaging.md");
    private static final Pattern EXPORTS = Pattern.compile("exports (io\\.cistern[a-z.]*);");

    private static Collection<String> exported() throws IOException {
        Collection<String> packages = new TreeSet<>();
        try (Stream<Path> files = Files.walk(AllPages.REPOSITORY.root())) {
            for (Path file :
                    files.filter(each -> each.endsWith("module-info.java")).toList()) {
                EXPORTS.matcher(Files.readString(file))
                        .results()
                        .map(match -> match.group(1))
                        .forEach(packages::add);
            }
        }
        return packages;
    }

    @Test
    void everyExportedPackageIsListed() throws IOException {
        List<String> listed = Nodes.all(Code.class, AllPages.at(PAGE).content()).stream()
                .map(Code::getLiteral)
                .toList();
        assertThat(exported())
                .hasSizeGreaterThan(30)
                .allSatisfy(each -> assertThat(listed).contains(each));
    }
}
