package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaModifier;
import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.Scope;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The form of what programs and plug-ins see: how much there is, and one way for each thing.
final class ApiShapeTests {
    private static final int MAX_METHODS = 26;
    private static final int MAX_TYPES = 26;

    private static final Path API = Path.of("../..", "allocator-api", "src", "main", "java", "io", "cistern");
    private static final Path BUFFERS = Path.of("../..", "device-buffers", "src", "main", "java");

    private static final JavaClasses CLASSES = MainClasses.ALL;

    private static Stream<JavaClass> publicTypes(String packageName) {
        return CLASSES.stream()
                .filter(type -> type.getPackageName().equals(packageName))
                .filter(JavaClass::isTopLevelClass)
                .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC));
    }

    /// Those that programs call, without what every object has.
    private static Stream<JavaMethod> publicMethods(JavaClass type) {
        return type.getMethods().stream()
                .filter(method -> method.getModifiers().contains(JavaModifier.PUBLIC))
                .filter(method -> !method.getModifiers().contains(JavaModifier.SYNTHETIC))
                .filter(method -> !Set.of("toString", "equals", "hashCode").contains(method.getName()));
    }

    @Test
    void aProgramMeetsFewTypes() {
        assertThat(publicTypes("io.cistern").map(JavaClass::getSimpleName))
                .contains("DeviceMemory")
                .hasSizeLessThanOrEqualTo(MAX_TYPES);
    }

    @Test
    void deviceMemoryHasFewMethods() {
        assertThat(publicMethods(CLASSES.get(DeviceMemory.class)).map(JavaMethod::getName))
                .contains("allocate", "free")
                .hasSizeLessThanOrEqualTo(MAX_METHODS);
    }

    @Test
    void aScopeIsEnteredInOneWay() {
        assertThat(publicTypes("io.cistern")
                        .flatMap(ApiShapeTests::publicMethods)
                        .filter(method -> method.getRawReturnType().isEquivalentTo(Scope.class))
                        .map(method -> method.getOwner().getSimpleName() + "." + method.getName())
                        .distinct())
                .containsExactly("Allocator.enter");
    }

    @ParameterizedTest
    @ValueSource(classes = {DeviceMemory.class, Allocator.class})
    void memoryIsTrimmedInOneWay(Class<?> type) {
        assertThat(publicMethods(CLASSES.get(type))
                        .map(JavaMethod::getName)
                        .filter(name -> name.toLowerCase(java.util.Locale.ROOT).contains("trim")))
                .containsExactly("trim");
    }

    @Test
    void aPoolForwardsNothing() {
        assertThat(publicMethods(CLASSES.get(MemoryPool.class)).map(JavaMethod::getName))
                .contains("sleep", "openTo")
                .doesNotContain("allocate", "enter", "statistics", "trim", "extension", "liveBlocks");
    }

    /// From a spec, or as options say.
    @Test
    void allocatorsAreOpenedInOneWay() {
        assertThat(publicMethods(CLASSES.get(DeviceMemory.class))
                        .filter(method -> method.getRawReturnType().isEquivalentTo(Allocator.class))
                        .map(method -> method.getName() + "("
                                + String.join(
                                        ",",
                                        method.getRawParameterTypes().stream()
                                                .map(JavaClass::getSimpleName)
                                                .toList())
                                + ")"))
                .containsExactlyInAnyOrder(
                        "open(String)", "open(OpenOptions)", "current(int)", "setCurrent(String)", "ownerOf(long)");
    }

    /// In every module. What a method takes once and calls back within the call is no listener.
    @Test
    void everyListenerIsRegisteredAndCanBeRemoved() {
        List<JavaMethod> taking = CLASSES.stream()
                .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                .filter(type -> !type.getPackageName().contains(".internal"))
                .flatMap(ApiShapeTests::publicMethods)
                .filter(method -> method.getRawParameterTypes().stream().anyMatch(ApiShapeTests::isListener))
                .toList();
        assertThat(taking).hasSizeGreaterThanOrEqualTo(7);
        assertThat(taking)
                .allSatisfy(method -> assertThat(method.getRawReturnType().isEquivalentTo(Registration.class))
                        .as(method.getFullName())
                        .isTrue());
    }

    private static boolean isListener(JavaClass type) {
        return type.getName().startsWith("io.cistern.")
                && (type.getName().startsWith("io.cistern.Listeners$")
                        || type.getSimpleName().endsWith("Listener"));
    }

    /// In Kotlin a method of that name would be called in place of the function that closes the object.
    @Test
    void nothingThatIsClosedHasAMethodUse() {
        List<JavaClass> closed = CLASSES.stream()
                .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                .filter(type -> type.isAssignableTo(AutoCloseable.class))
                .toList();
        assertThat(closed).hasSizeGreaterThanOrEqualTo(20);
        assertThat(closed.stream()
                        .flatMap(type -> type.getAllMethods().stream())
                        .filter(method -> method.getModifiers().contains(JavaModifier.PUBLIC))
                        .filter(method -> method.getName().equals("use"))
                        .map(JavaMethod::getFullName))
                .isEmpty();
    }

    @Test
    void buildersAreNestedInWhatTheyBuild() {
        List<JavaClass> builders = CLASSES.stream()
                .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                .filter(type -> type.getSimpleName().endsWith("Builder"))
                .toList();
        assertThat(builders).hasSizeGreaterThanOrEqualTo(3);
        assertThat(builders)
                .allSatisfy(type ->
                        assertThat(type.getSimpleName()).as(type.getName()).isEqualTo("Builder"));
        assertThat(builders).noneMatch(JavaClass::isTopLevelClass);
    }

    @Test
    void theSpisPageNamesAllItsTypes() throws IOException {
        String page = Files.readString(API.resolve("spi").resolve("DeviceAllocator.java"));
        assertThat(publicTypes("io.cistern.spi").map(JavaClass::getSimpleName))
                .hasSizeGreaterThanOrEqualTo(20)
                .allSatisfy(name -> assertThat(name.equals("DeviceAllocator") || page.contains("[" + name + "]"))
                        .as(name)
                        .isTrue());
    }

    /// An ability is what an allocator may be asked for: each has a line that says what happens without it.
    @Test
    void eachAbilityHasItsLineOnTheSpisPage() throws IOException {
        String page = Files.readString(API.resolve("spi").resolve("DeviceAllocator.java"));
        List<String> abilities = publicTypes("io.cistern.spi")
                .filter(type -> type.getModifiers().contains(JavaModifier.ABSTRACT))
                .filter(type -> !type.getMethods().isEmpty())
                .filter(type -> type.getMethods().stream()
                        .noneMatch(method -> method.getModifiers().contains(JavaModifier.ABSTRACT)))
                .filter(JavaClass::isInterface)
                .filter(type -> !type.getSimpleName().equals("SegmentSource"))
                .map(JavaClass::getSimpleName)
                .toList();
        assertThat(abilities).hasSize(6);
        assertThat(abilities)
                .allSatisfy(
                        name -> assertThat(page).containsPattern("/// \\| \\[" + name + "] \\| [^|]+ \\| [^|]+ \\|"));
    }

    @Test
    void nothingCastsItselfOrAnObject() throws IOException {
        Pattern cast = Pattern.compile("\\([A-Z][\\w.]*(<.*>)?\\) this\\b|\\bObject \\w+ = |\\bObject \\w+;");
        try (Stream<Path> files = Stream.of(API, BUFFERS).flatMap(ApiShapeTests::sources)) {
            assertThat(files.flatMap(file -> lines(file).stream()
                            .filter(line -> cast.matcher(line).find())
                            .map(line -> file.getFileName() + ": " + line.strip())))
                    .isEmpty();
        }
    }

    private static Stream<Path> sources(Path folder) {
        try {
            return Files.walk(folder).filter(file -> file.toString().endsWith(".java"));
        } catch (IOException missing) {
            throw new java.io.UncheckedIOException(missing);
        }
    }

    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file);
        } catch (IOException unreadable) {
            throw new java.io.UncheckedIOException(unreadable);
        }
    }
}
