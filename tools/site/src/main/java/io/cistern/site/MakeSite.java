package io.cistern.site;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;

/// Makes the site: `MakeSite ROOT OUT`. Deletes the earlier content of `OUT`.
public final class MakeSite {
    private MakeSite() {}

    /// Makes the site and prints the path of its first page.
    ///
    /// @param arguments the root of the repository, and the folder for the site
    public static void main(String[] arguments) throws IOException {
        Path root = Path.of(arguments[0]).toAbsolutePath().normalize();
        Path out = Path.of(arguments[1]).toAbsolutePath().normalize();
        delete(out);
        Files.createDirectories(out);
        ApiDocs.make(root, out.resolve("api"), System.getProperty("java.class.path"));
        Site.make(new Repository(root), out, true);
        System.out.println(out.resolve("index.html"));
    }

    private static void delete(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return;
        }
        Files.walkFileTree(folder, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.delete(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(
                    Path done, java.io.@org.jspecify.annotations.Nullable IOException failure) throws IOException {
                Files.delete(done);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
