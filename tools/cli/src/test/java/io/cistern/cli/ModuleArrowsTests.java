package io.cistern.cli;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.util.Comparator;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Which module may use which. Each module owns one package tree; what is not listed here fails.
final class ModuleArrowsTests {
    private static final String DRIVER = "io.cistern.cuda";
    private static final String API = "io.cistern";
    private static final String BUFFERS = "io.cistern.buffers";

    /// The API's own name begins those of all modules, so its packages are listed.
    private static final Set<String> API_PACKAGES = Set.of(
            API,
            "io.cistern.diagnostics",
            "io.cistern.errors",
            "io.cistern.graph",
            "io.cistern.spi",
            "io.cistern.spi.catalog",
            "io.cistern.spi.options");

    private static final String API_INTERNALS = "io.cistern.internal.";

    /// Every module by its package, and the modules it may use.
    private static final Map<String, Set<String>> MAY_USE = Map.ofEntries(
            Map.entry(DRIVER, Set.of()),
            Map.entry("io.cistern.simulated", Set.of(DRIVER)),
            Map.entry(API, Set.of(DRIVER)),
            Map.entry(BUFFERS, Set.of(API, DRIVER)),
            Map.entry("io.cistern.caching", Set.of(API, DRIVER)),
            Map.entry("io.cistern.async", Set.of(API, DRIVER, "io.cistern.buffers")),
            Map.entry("io.cistern.nccl", Set.of(API, DRIVER, BUFFERS, "io.cistern.caching")),
            Map.entry("io.cistern.loader", Set.of(API, DRIVER)),
            Map.entry("io.cistern.adaptors", Set.of(API, DRIVER)),
            Map.entry("io.cistern.hazards", Set.of(API, DRIVER)),
            Map.entry("io.cistern.pressure", Set.of(API, DRIVER)),
            Map.entry("io.cistern.handles", Set.of(API, DRIVER)),
            Map.entry("io.cistern.observability", Set.of(API, DRIVER)),
            Map.entry("io.cistern.testkit", Set.of(API, DRIVER, "io.cistern.simulated", "io.cistern.hazards")),
            Map.entry("io.cistern.peers", Set.of(API, DRIVER)),
            Map.entry("io.cistern.torch", Set.of(API, DRIVER, "io.cistern.observability")),
            Map.entry(
                    "io.cistern.cli",
                    Set.of(
                            API,
                            DRIVER,
                            BUFFERS,
                            "io.cistern.simulated",
                            "io.cistern.loader",
                            "io.cistern.observability")));

    /// How an unknown name is answered and several failures are told, for those who do it as the API does.
    private static final String SHARED_NAMES = "io.cistern.internal.names";

    /// What the API's module exports to buffers alone.
    private static final DescribedPredicate<Dependency> BUFFERS_TO_API = DescribedPredicate.describe(
            "from buffers to the API",
            arrow -> moduleOf(arrow.getOriginClass()).equals(BUFFERS)
                    && moduleOf(arrow.getTargetClass()).equals(API));

    /// What the API's module exports to allocators: the table of threads to caching, locks and threads that rest to
    /// the arbiter of tasks, locks to NCCL's segments, ends of streams to those that pass handles on to the driver,
    /// reserves to what grows within the driver.
    private static final Map<String, Set<String>> EXPORTED = Map.of(
            "io.cistern.internal.direct", Set.of("io.cistern.async"),
            "io.cistern.internal.threads", Set.of("io.cistern.caching", "io.cistern.nccl", "io.cistern.pressure"),
            "io.cistern.internal.order", Set.of("io.cistern.async", "io.cistern.nccl"));

    private static final DescribedPredicate<Dependency> ALLOCATORS_TO_API = DescribedPredicate.describe(
            "from an allocator to what is exported to it",
            arrow -> EXPORTED.getOrDefault(arrow.getTargetClass().getPackageName(), Set.of())
                    .contains(moduleOf(arrow.getOriginClass())));

    private static final JavaClasses CLASSES = MainClasses.ALL;

    @Test
    void everyModuleIsLookedAt() {
        assertThat(MAY_USE.keySet())
                .allSatisfy(module -> assertThat(CLASSES.stream().filter(in(module)))
                        .as(module)
                        .isNotEmpty());
    }

    @Test
    void everyPackageBelongsToAModule() {
        assertThat(CLASSES.stream().filter(type -> moduleOf(type).isEmpty()).map(JavaClass::getPackageName))
                .as("packages of no module that is listed here")
                .isEmpty();
    }

    @Test
    void modulesUseOnlyTheModulesTheyMay() {
        MAY_USE.forEach((module, used) -> {
            DescribedPredicate<JavaClass> allowed = in(module);
            for (String other : used) {
                allowed = allowed.or(in(other));
            }
            classes()
                    .that(in(module))
                    .should()
                    .onlyDependOnClassesThat(
                            not(resideInAPackage("io.cistern..")).or(allowed))
                    .check(CLASSES);
        });
    }

    @Test
    void theDriverAndTheSpiNeedNothingButJava() {
        classes()
                .that(in(DRIVER).or(in(API)))
                .should()
                .onlyDependOnClassesThat(resideInAnyPackage("java..", "io.cistern..", "org.jspecify.annotations"))
                .check(CLASSES);
    }

    @Test
    void nobodyReachesIntoTheInternalsOfAnother() {
        DescribedPredicate<JavaClass> internals =
                resideInAnyPackage("..internal..", "..ffm..").and(not(resideInAPackage(SHARED_NAMES)));
        assertThat(CLASSES.stream().filter(internals)).isNotEmpty();
        assertThat(CLASSES.stream()
                        .flatMap(type -> type.getDirectDependenciesFromSelf().stream())
                        .filter(arrow -> internals.test(arrow.getTargetClass()))
                        .filter(arrow -> !moduleOf(arrow.getOriginClass()).equals(moduleOf(arrow.getTargetClass())))
                        .filter(not(BUFFERS_TO_API))
                        .filter(not(ALLOCATORS_TO_API))
                        .map(Dependency::getDescription))
                .isEmpty();
    }

    @Test
    void packagesOfOneModuleMakeNoCyclesBetweenModules() {
        slices().assignedFrom(new SliceAssignment() {
                    @Override
                    public SliceIdentifier getIdentifierOf(JavaClass type) {
                        return SliceIdentifier.of(moduleOf(type));
                    }

                    @Override
                    public String getDescription() {
                        return "modules";
                    }
                })
                .should()
                .beFreeOfCycles()
                .check(CLASSES);
    }

    @Test
    void packagesOfTheProgramMakeNoCycles() {
        slices().matching("(io.cistern.cli..)").should().beFreeOfCycles().check(CLASSES);
    }

    private static DescribedPredicate<JavaClass> in(String module) {
        return DescribedPredicate.describe(
                "in " + module, type -> moduleOf(type).equals(module));
    }

    /// The module with the longest known package that the class is in; empty if there is none.
    private static String moduleOf(JavaClass type) {
        String name = type.getPackageName();
        if (API_PACKAGES.contains(name) || name.startsWith(API_INTERNALS)) {
            return API;
        }
        return MAY_USE.keySet().stream()
                .filter(module -> !module.equals(API))
                .filter(module -> name.equals(module) || name.startsWith(module + "."))
                .max(Comparator.comparingInt(String::length))
                .orElse("");
    }
}
