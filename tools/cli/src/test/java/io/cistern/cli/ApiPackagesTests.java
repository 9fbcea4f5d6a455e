package io.cistern.cli;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// The packages of allocator-api as ARCHITECTURE.md draws them: by audience above, by layer
/// below, arrows downwards only.
final class ApiPackagesTests {
    /// From the lowest floor to the highest. Packages of one floor do not know each other.
    private static final List<Set<String>> FLOORS = List.of(
            Set.of("io.cistern.internal.names", "io.cistern.internal.statistics", "io.cistern.internal.threads"),
            Set.of("io.cistern.diagnostics"),
            Set.of("io.cistern.errors"),
            Set.of("io.cistern.spi"),
            Set.of("io.cistern.internal.events"),
            Set.of("io.cistern.internal.order", "io.cistern.internal.options", "io.cistern.internal.direct"),
            Set.of("io.cistern.internal.routing"),
            Set.of("io.cistern.internal.leaks"),
            Set.of("io.cistern.internal.registry"),
            Set.of("io.cistern.internal.capture"),
            Set.of("io.cistern.internal.reclaim"),
            Set.of("io.cistern"),
            Set.of("io.cistern.graph"));

    private static final JavaClasses CLASSES =
            MainClasses.ALL.that(DescribedPredicate.describe("of allocator-api", type -> floorOf(type) >= 0));

    @Test
    void everyFloorHasClasses() {
        for (Set<String> floor : FLOORS) {
            assertThat(floor)
                    .allSatisfy(name -> assertThat(CLASSES.stream()
                                    .filter(type -> type.getPackageName().equals(name)))
                            .as(name)
                            .isNotEmpty());
        }
    }

    @Test
    void everyInternalPackageHasAFloor() {
        assertThat(MainClasses.ALL.stream()
                        .filter(type -> type.getPackageName().startsWith("io.cistern.internal"))
                        .filter(type -> floorOf(type) < 0)
                        .map(JavaClass::getPackageName))
                .isEmpty();
    }

    @Test
    void arrowsPointDownwards() {
        assertThat(CLASSES.stream()
                        .flatMap(type -> type.getDirectDependenciesFromSelf().stream())
                        .filter(ApiPackagesTests::pointsUpwards)
                        .map(Dependency::getDescription))
                .isEmpty();
    }

    private static boolean pointsUpwards(Dependency arrow) {
        JavaClass from = arrow.getOriginClass();
        JavaClass to = arrow.getTargetClass();
        return !from.getPackageName().equals(to.getPackageName()) && floorOf(to) >= floorOf(from);
    }

    private static int floorOf(JavaClass type) {
        for (int floor = 0; floor < FLOORS.size(); floor++) {
            if (FLOORS.get(floor).contains(type.getPackageName())) {
                return floor;
            }
        }
        return -1;
    }

    @Test
    void packagesMakeNoCycles() {
        slices().matching("(io.cistern..)").should().beFreeOfCycles().check(CLASSES);
    }
}
