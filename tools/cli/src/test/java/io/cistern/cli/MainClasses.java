package io.cistern.cli;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;

/// All classes of Cistern that are no tests, as ArchUnit reads them: once for all rules that run in one JVM.
final class MainClasses {
    static final JavaClasses ALL = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.cistern");

    private MainClasses() {}
}
