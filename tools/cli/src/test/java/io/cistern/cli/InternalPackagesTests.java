package io.cistern.cli;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The packages of the simulated GPU and of nccl-allocator: what programs see stands on top of internal floors.
final class InternalPackagesTests {
    private static final String SIMULATED = "io.cistern.simulated";
    private static final String NCCL = "io.cistern.nccl";

    /// From the lowest to the highest; the last one is what programs see.
    static List<List<String>> floors() {
        return List.of(
                List.of(
                        SIMULATED + ".internal.memory",
                        SIMULATED + ".internal.stream",
                        SIMULATED + ".internal.pool",
                        SIMULATED + ".internal.space",
                        SIMULATED),
                List.of(NCCL + ".internal.call", NCCL + ".internal.segment", NCCL + ".internal.symmetric", NCCL));
    }

    private static JavaClasses classes(List<String> floors) {
        return MainClasses.ALL.that(resideInAPackage(floors.getLast() + ".."));
    }

    @ParameterizedTest
    @MethodSource("floors")
    void eachPackageIsAFloor(List<String> floors) {
        assertThat(classes(floors).stream().map(JavaClass::getPackageName).collect(Collectors.toSet()))
                .containsExactlyInAnyOrderElementsOf(floors);
    }

    @ParameterizedTest
    @MethodSource("floors")
    void arrowsPointDownwards(List<String> floors) {
        assertThat(classes(floors).stream()
                        .flatMap(type -> type.getDirectDependenciesFromSelf().stream())
                        .filter(arrow -> floors.indexOf(arrow.getTargetClass().getPackageName())
                                > floors.indexOf(arrow.getOriginClass().getPackageName()))
                        .map(Dependency::getDescription))
                .isEmpty();
    }

    @ParameterizedTest
    @MethodSource("floors")
    void packagesMakeNoCycles(List<String> floors) {
        slices().matching("(" + floors.getLast() + "..)")
                .should()
                .beFreeOfCycles()
                .check(classes(floors));
    }
}
