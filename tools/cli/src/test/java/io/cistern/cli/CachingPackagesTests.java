package io.cistern.cli;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/// The packages of caching-allocator as ARCHITECTURE.md draws them: one floor on top of another, arrows downwards only.
final class CachingPackagesTests {
    private static final String CACHING = "io.cistern.caching";
    private static final String INTERNAL = CACHING + ".internal.";
    private static final String HEAP = INTERNAL + "heap";
    private static final String PAGE = INTERNAL + "page";

    /// From the lowest to the highest.
    private static final List<String> FLOORS = List.of(
            CACHING + ".options",
            INTERNAL + "base",
            INTERNAL + "order",
            HEAP,
            PAGE,
            INTERNAL + "sleep",
            INTERNAL + "shard",
            INTERNAL + "growth",
            INTERNAL + "compact",
            INTERNAL + "thread",
            INTERNAL + "check",
            CACHING);

    /// All that pages need of the package below them: which range an address lies in, and whose it is.
    private static final Set<String> KNOWN_TO_PAGES = Set.of("AddressRange", "AddressRangeMap", "Range", "RangeOwner");

    private static final JavaClasses CLASSES = MainClasses.ALL.that(resideInAPackage(CACHING + ".."));

    @Test
    void eachPackageIsAFloor() {
        assertThat(CLASSES.stream().map(JavaClass::getPackageName).collect(Collectors.toSet()))
                .containsExactlyInAnyOrderElementsOf(FLOORS);
    }

    @Test
    void arrowsPointDownwards() {
        assertThat(CLASSES.stream()
                        .flatMap(type -> type.getDirectDependenciesFromSelf().stream())
                        .filter(CachingPackagesTests::pointsUpwards)
                        .map(Dependency::getDescription))
                .isEmpty();
    }

    private static boolean pointsUpwards(Dependency arrow) {
        return FLOORS.indexOf(arrow.getTargetClass().getPackageName())
                > FLOORS.indexOf(arrow.getOriginClass().getPackageName());
    }

    @Test
    void pagesKnowNoBlocks() {
        assertThat(CLASSES.stream()
                        .filter(type -> type.getPackageName().equals(PAGE))
                        .flatMap(type -> type.getDirectDependenciesFromSelf().stream())
                        .map(Dependency::getTargetClass)
                        .filter(type -> type.getPackageName().equals(HEAP))
                        .map(JavaClass::getSimpleName))
                .isNotEmpty()
                .isSubsetOf(KNOWN_TO_PAGES);
    }

    @Test
    void packagesMakeNoCycles() {
        slices().matching("(io.cistern.caching..)").should().beFreeOfCycles().check(CLASSES);
    }

    /// What is public there is for programs; all else is in packages that the module does not export.
    @Test
    void programsSeeTheProviderAlone() {
        assertThat(CLASSES.stream()
                        .filter(type -> type.getPackageName().equals(CACHING))
                        .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                        .map(JavaClass::getSimpleName))
                .containsExactly("CachingProvider");
    }
}
