package io.cistern.faults;

import java.io.File;
import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.MethodModel;
import java.lang.classfile.instruction.LineNumber;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/// Puts a call of [FaultSites#at] in front of each place of some packages where the JVM may throw an error.
///
/// The argument of the agent is the [FaultKind], `=`, and the beginnings of the names of classes, with slashes and
/// commas. Class initialisers are left as they are: one that fails makes its class unusable for good, whatever it does.
public final class FaultAgent implements ClassFileTransformer {
    private static final ClassDesc SITES = ClassDesc.of(FaultSites.class.getName());
    private static final MethodTypeDesc AT = MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_int);

    /// Class initialisers, and what the compiler adds to enumerations.
    private static final Set<String> LEFT_OUT = Set.of(ConstantDescs.CLASS_INIT_NAME, "values", "$values");

    private static List<String> chosen = List.of();

    private final FaultKind kind;
    private final List<String> prefixes;

    private FaultAgent(FaultKind kind, List<String> prefixes) {
        this.kind = kind;
        this.prefixes = prefixes;
    }

    /// Called by the JVM before the program.
    public static void premain(String argument, Instrumentation instrumentation) {
        String[] parts = argument.split("=", 2);
        chosen = Arrays.asList(parts[1].split(","));
        instrumentation.addTransformer(new FaultAgent(FaultKind.valueOf(parts[0]), chosen));
    }

    /// Loads all classes that begin with one of the prefixes, so that the sites of those that nobody uses are known
    /// too.
    static void loadAll() throws IOException, ReflectiveOperationException {
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            for (String name : classes(Path.of(entry))) {
                if (chosen.stream().anyMatch(name::startsWith)) {
                    Class.forName(name.replace('/', '.'), false, FaultAgent.class.getClassLoader());
                }
            }
        }
    }

    /// @return the classes in a folder or an archive, with slashes; none of the folder that this class is in
    private static List<String> classes(Path entry) throws IOException {
        boolean ofTests = Files.exists(entry.resolve(SITES.descriptorString().replaceAll("^L|;$", "") + ".class"));
        if (ofTests || !Files.exists(entry)) {
            return List.of();
        }
        if (Files.isDirectory(entry)) {
            return classesBelow(entry);
        }
        try (FileSystem archive = FileSystems.newFileSystem(entry)) {
            return classesBelow(archive.getPath("/"));
        }
    }

    private static List<String> classesBelow(Path root) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            return files.map(file -> root.relativize(file).toString().replace('\\', '/'))
                    .filter(file -> file.startsWith("io/cistern/") && file.endsWith(".class"))
                    .map(file -> file.substring(0, file.length() - ".class".length()))
                    .toList();
        }
    }

    @Override
    public byte[] transform(
            Module module, ClassLoader loader, String name, Class<?> present, ProtectionDomain domain, byte[] bytes) {
        if (name == null || prefixes.stream().noneMatch(name::startsWith) || isOfTests(name, domain)) {
            return null;
        }
        try {
            // Classes that the JVM is about to define must not be loaded for their supertypes.
            ClassFile classFile = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(
                    ClassHierarchyResolver.ofResourceParsing(ClassLoader.getSystemClassLoader())));
            return classFile.transformClass(classFile.parse(bytes), transforming(name));
        } catch (Throwable failure) { // which the JVM would ignore
            FaultSites.brokenBy(name, failure);
            return null;
        }
    }

    /// Proxies are of tests too.
    private static boolean isOfTests(String name, ProtectionDomain domain) {
        CodeSource its = domain == null ? null : domain.getCodeSource();
        return name.contains("$Proxy")
                || (its != null
                        && its.equals(FaultAgent.class.getProtectionDomain().getCodeSource()));
    }

    private ClassTransform transforming(String name) {
        return (builder, element) -> {
            if (element instanceof MethodModel method
                    && !LEFT_OUT.contains(method.methodName().stringValue())) {
                String where =
                        name.replace('/', '.') + "." + method.methodName().stringValue();
                builder.transformMethod(method, (inside, part) -> {
                    if (part instanceof CodeModel code) {
                        inside.transformCode(code, new SiteMarks(where));
                    } else {
                        inside.with(part);
                    }
                });
            } else {
                builder.with(element);
            }
        };
    }

    private final class SiteMarks implements CodeTransform {
        private final String method;
        private int line;

        SiteMarks(String method) {
            this.method = method;
        }

        @Override
        public void accept(CodeBuilder builder, CodeElement element) {
            if (element instanceof LineNumber number) {
                line = number.line();
            }
            String what = kind.fails(element);
            if (what != null) {
                builder.loadConstant(FaultSites.add(method, line, what)).invokestatic(SITES, "at", AT);
            }
            builder.with(element);
        }
    }
}
