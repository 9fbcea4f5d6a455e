package io.cistern.cli;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Which module may use which. Each module owns one package tree; what is not listed here fails.
final class ModuleArrowsTests {
    private static final String DRIVER = "io.cistern.cuda";
    private static final String API = "io.cistern";

    /// Every module by its package, and the modules it may use.
    private static final Map<String, Set<String>> MAY_USE = Map.ofEntries(
            Map.entry(DRIVER, Set.of()),
            Map.entry("io.cistern.simulated", Set.of(DRIVER)),
            Map.entry(API, Set.of(DRIVER)),
            Map.entry("io.cistern.caching", Set.of(API, DRIVER)),
            Map.entry("io.cistern.async", Set.of(API, DRIVER)),
            Map.entry("io.cistern.nccl", Set.of(API, DRIVER, "io.cistern.caching")),
            Map.entry("io.cistern.loader", Set.of(API, DRIVER)),
            Map.entry("io.cistern.adaptors", Set.of(API)),
            Map.entry("io.cistern.pressure", Set.of(API, DRIVER)),
            Map.entry("io.cistern.testkit", Set.of(API, DRIVER, "io.cistern.simulated")),
            Map.entry("io.cistern.cli", Set.of(API, DRIVER, "io.cistern.simulated", "io.cistern.loader")),
            Map.entry(
                    "io.cistern.nccl.testkit",
                    Set.of(API, DRIVER, "io.cistern.nccl", "io.cistern.caching", "io.cistern.testkit")));

    /// How an unknown name is answered and several failures are told, for those who do it as the API does.
    private static final String SHARED_NAMES = "io.cistern.internal.names";

    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.cistern");

    @Test
    void everyModuleIsLookedAt() {
        assertThat(MAY_USE.keySet())
                .allSatisfy(module -> assertThat(CLASSES.stream().filter(in(module)))
                        .as(module)
                        .isNotEmpty());
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
        for (String module : MAY_USE.keySet()) {
            noClasses()
                    .that(not(in(module)))
                    .should()
                    .dependOnClassesThat(in(module)
                            .and(resideInAnyPackage("..internal..", "..ffm.."))
                            .and(not(resideInAPackage(SHARED_NAMES))))
                    .allowEmptyShould(true)
                    .check(CLASSES);
        }
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

    private static DescribedPredicate<JavaClass> in(String module) {
        return DescribedPredicate.describe(
                "in " + module, type -> moduleOf(type).equals(module));
    }

    /// The longest known package that the class is in.
    private static String moduleOf(JavaClass type) {
        String found = "";
        for (String module : MAY_USE.keySet()) {
            boolean inside = type.getPackageName().equals(module)
                    || type.getPackageName().startsWith(module + ".");
            if (inside && module.length() > found.length()) {
                found = module;
            }
        }
        return found;
    }
}
