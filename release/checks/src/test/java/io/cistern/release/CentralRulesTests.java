package io.cistern.release;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/// What Maven Central asks for (central.sonatype.org/publish/requirements), of each artifact of a staged
/// release.
class CentralRulesTests {
    static List<StagedArtifact> artifacts() throws IOException {
        return StagedArtifact.all();
    }

    static List<StagedArtifact> jars() throws IOException {
        return artifacts().stream().filter(StagedArtifact::isJar).toList();
    }

    @Test
    void theReleaseIsWhatUsersDependOnAndNothingElse() throws Exception {
        assertThat(artifacts())
                .extracting(StagedArtifact::name)
                .containsExactly(
                        "cistern",
                        "cistern-adaptors",
                        "cistern-stream-hazards",
                        "cistern-allocator-api",
                        "cistern-allocator-testkit",
                        "cistern-async-allocator",
                        "cistern-bom",
                        "cistern-caching-allocator",
                        "cistern-context-propagation",
                        "cistern-cuda-driver",
                        "cistern-device-buffers",
                        "cistern-guice",
                        "cistern-handle-pool",
                        "cistern-javacpp",
                        "cistern-jcuda",
                        "cistern-kotlin",
                        "cistern-memory-pressure",
                        "cistern-micrometer",
                        "cistern-nccl-allocator",
                        "cistern-observability",
                        "cistern-onnxruntime",
                        "cistern-pluggable-loader",
                        "cistern-simulated-gpu",
                        "cistern-spark",
                        "cistern-spring-boot");
    }

    @ParameterizedTest
    @MethodSource("artifacts")
    void aPomSaysWhatItIsWhoMadeItAndUnderWhichLicence(StagedArtifact artifact) throws Exception {
        assertThat(artifact.pomText("groupId")).isEqualTo("io.cistern");
        assertThat(artifact.pomText("artifactId")).isEqualTo(artifact.name());
        assertThat(artifact.pomText("version")).isEqualTo(StagedArtifact.VERSION);
        for (String[] path : new String[][] {
            {"name"},
            {"description"},
            {"url"},
            {"licenses", "license", "name"},
            {"licenses", "license", "url"},
            {"developers", "developer", "name"},
            {"scm", "connection"},
            {"scm", "url"}
        }) {
            assertThat(artifact.pomText(path)).as(String.join("/", path)).isNotEmpty();
        }
    }

    @ParameterizedTest
    @MethodSource("artifacts")
    void aPomStandsAlone(StagedArtifact artifact) throws Exception {
        assertThat(artifact.pomText("parent")).isEmpty();
        assertThat(artifact.pomText("repositories")).isEmpty();
        NodeList dependencies = artifact.pom().getElementsByTagName("dependency");
        for (int i = 0; i < dependencies.getLength(); i++) {
            Element dependency = (Element) dependencies.item(i);
            assertThat(dependency.getElementsByTagName("version").getLength())
                    .as(dependency.getTextContent())
                    .isEqualTo(1);
            assertThat(dependency.getTextContent().replace("${project.version}", ""))
                    .doesNotContain("SNAPSHOT", "${");
        }
    }

    @ParameterizedTest
    @MethodSource("jars")
    void aJarComesWithSourcesJavadocAndABillOfMaterials(StagedArtifact artifact) throws Exception {
        assertThat(entries(artifact.file("-sources.jar"))).anyMatch(name -> name.endsWith(".java"));
        assertThat(entries(artifact.file("-javadoc.jar"))).contains("index.html");
        assertThat(artifact.file("-cyclonedx.json"))
                .content()
                .contains("\"bomFormat\" : \"CycloneDX\"", artifact.name());
    }

    @ParameterizedTest
    @MethodSource("artifacts")
    void everyFileHasItsSumsAndAValidSignature(StagedArtifact artifact) throws Exception {
        for (Path file : artifact.published()) {
            assertThat(Path.of(file + ".md5")).hasContent(sum("MD5", file));
            assertThat(Path.of(file + ".sha1")).hasContent(sum("SHA-1", file));
            Command.run(artifact.folder(), "gpg", "--batch", "--verify", file + ".asc", file.toString());
        }
    }

    @Test
    void theJavadocOfAllShowsTheModules() throws Exception {
        StagedArtifact all = artifacts().getFirst();
        assertThat(entries(all.file("-javadoc.jar")))
                .contains(
                        "io.cistern/doc-files/modules.svg",
                        "io.cistern.api/io/cistern/DeviceMemory.html",
                        "io.cistern.buffers/io/cistern/buffers/DeviceBuffer.html");
    }

    private static List<String> entries(Path jar) throws IOException {
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            return zip.stream().map(Object::toString).toList();
        }
    }

    private static String sum(String algorithm, Path file) throws IOException, NoSuchAlgorithmException {
        return HexFormat.of().formatHex(MessageDigest.getInstance(algorithm).digest(Files.readAllBytes(file)));
    }
}
