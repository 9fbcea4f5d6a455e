package io.cistern.faults;

import java.lang.classfile.ClassFile;
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
import java.security.ProtectionDomain;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/// Puts a call of [FaultSites#at] in front of each place of some packages where the JVM may throw an error.
///
/// The argument of the agent is the [FaultKind], `=`, and the beginnings of the names of classes, with slashes and
/// commas. Class initialisers are left as they are: one that fails makes its class unusable for good, whatever it does.
public final class FaultAgent implements ClassFileTransformer {
    private static final ClassDesc SITES = ClassDesc.of(FaultSites.class.getName());
    private static final MethodTypeDesc AT = MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_int);

    /// Class initialisers, and what the compiler adds to enumerations.
    private static final Set<String> LEFT_OUT = Set.of(ConstantDescs.CLASS_INIT_NAME, "values", "$values");

    private final FaultKind kind;
    private final List<String> prefixes;

    private FaultAgent(FaultKind kind, List<String> prefixes) {
        this.kind = kind;
        this.prefixes = prefixes;
    }

    /// Called by the JVM before the program.
    public static void premain(String argument, Instrumentation instrumentation) {
        String[] parts = argument.split("=", 2);
        List<String> prefixes = Arrays.asList(parts[1].split(","));
        instrumentation.addTransformer(new FaultAgent(FaultKind.valueOf(parts[0]), prefixes));
    }

    @Override
    public byte[] transform(
            Module module, ClassLoader loader, String name, Class<?> present, ProtectionDomain domain, byte[] bytes) {
        if (name == null || prefixes.stream().noneMatch(name::startsWith)) {
            return null;
        }
        try {
            ClassFile classFile = ClassFile.of();
            return classFile.transformClass(classFile.parse(bytes), transforming(name));
        } catch (Throwable failure) { // which the JVM would ignore
            FaultSites.brokenBy(name, failure);
            return null;
        }
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
