package io.cistern.cli;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.util.regex.Pattern;

/// All classes of Cistern that are no tests, as ArchUnit reads them: once for all rules that run in one JVM.
final class MainClasses {
    /// A folder or a JAR of classes of tests, whatever folder the build writes to.
    private static final Pattern TESTS = Pattern.compile(".*(/test-classes/|-tests\\.jar!).*");

    static final JavaClasses ALL = new ClassFileImporter()
            .withImportOption(location -> !location.matches(TESTS))
            .importPackages("io.cistern");

    private MainClasses() {}
}
