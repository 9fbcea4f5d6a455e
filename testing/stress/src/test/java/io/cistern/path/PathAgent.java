package io.cistern.path;

import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.MethodModel;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/// Tells [PathLog] of each method of Cistern that a thread enters, but for those of the driver.
public final class PathAgent implements ClassFileTransformer {
    private static final ClassDesc LOG = ClassDesc.of(PathLog.class.getName());
    private static final MethodTypeDesc ENTERED =
            MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_String, ConstantDescs.CD_String);

    private PathAgent() {}

    /// Called by the JVM before the program.
    public static void premain(String argument, Instrumentation instrumentation) {
        instrumentation.addTransformer(new PathAgent());
    }

    @Override
    public byte[] transform(
            Module module, ClassLoader loader, String name, Class<?> present, ProtectionDomain domain, byte[] bytes) {
        boolean counts = name != null
                && name.startsWith("io/cistern/")
                && !name.matches("io/cistern/(cuda|simulated|path)/.*")
                && !name.contains("$Proxy");
        if (!counts) {
            return null;
        }
        ClassFile classFile = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(
                ClassHierarchyResolver.ofResourceParsing(ClassLoader.getSystemClassLoader())));
        return classFile.transformClass(classFile.parse(bytes), transforming(name.replace('/', '.')));
    }

    private static ClassTransform transforming(String name) {
        return (builder, element) -> {
            if (element instanceof MethodModel method && !isInitialiser(method)) {
                String called = method.methodName().stringValue();
                builder.transformMethod(method, (inside, part) -> {
                    if (part instanceof CodeModel code) {
                        inside.transformCode(code, new Entry(name, called));
                    } else {
                        inside.with(part);
                    }
                });
            } else {
                builder.with(element);
            }
        };
    }

    private static boolean isInitialiser(MethodModel method) {
        return method.methodName().equalsString(ConstantDescs.CLASS_INIT_NAME);
    }

    private record Entry(String type, String method) implements CodeTransform {
        @Override
        public void atStart(CodeBuilder builder) {
            builder.loadConstant(type).loadConstant(method).invokestatic(LOG, "entered", ENTERED);
        }

        @Override
        public void accept(CodeBuilder builder, CodeElement element) {
            builder.with(element);
        }
    }
}
