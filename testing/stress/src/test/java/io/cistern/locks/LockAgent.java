package io.cistern.locks;

import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.MethodModel;
import java.lang.classfile.Opcode;
import java.lang.classfile.instruction.FieldInstruction;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.classfile.instruction.MonitorInstruction;
import java.lang.classfile.instruction.ReturnInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.AccessFlag;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.util.Set;

/// Tells [LockOrder] of each lock that classes of Cistern take: monitors, `ReentrantLock`, and locks of its own.
public final class LockAgent implements ClassFileTransformer {
    private static final String SHORT = "io/cistern/caching/internal/base/ShortLock";
    private static final String BIASED = "io/cistern/internal/threads/BiasedLock";
    private static final String HELD = "io/cistern/internal/threads/HeldLock";
    private static final String REENTRANT = "java/util/concurrent/locks/ReentrantLock";

    /// Locks that are taken by a call on a field.
    private static final Set<String> CALLED = Set.of(REENTRANT, SHORT, HELD);

    /// Locks whose end is told.
    static final Set<String> EXPLICIT = Set.of(SHORT, BIASED);

    /// Their methods that wait for the lock, that try it, and that leave it.
    private static final Set<String> WAITING = Set.of("enterShared", "claim");

    private static final Set<String> TRYING = Set.of("tryEnter", "tryEnterShared");
    private static final Set<String> LEAVING = Set.of("unlock", "leave", "endClaim");

    private static final ClassDesc ORDER = ClassDesc.of(LockOrder.class.getName());
    private static final MethodTypeDesc OF_LOCK =
            MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_Object, ConstantDescs.CD_String);

    private LockAgent() {}

    /// Called by the JVM before the program.
    public static void premain(String argument, Instrumentation instrumentation) {
        instrumentation.addTransformer(new LockAgent());
    }

    @Override
    public byte[] transform(
            Module module, ClassLoader loader, String name, Class<?> present, ProtectionDomain domain, byte[] bytes) {
        if (name == null || !name.startsWith("io/cistern/") || isOfTests(domain)) {
            return null;
        }
        try {
            // Classes that the JVM is about to define must not be loaded for their supertypes.
            ClassFile classFile = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(
                    ClassHierarchyResolver.ofResourceParsing(ClassLoader.getSystemClassLoader())));
            return classFile.transformClass(classFile.parse(bytes), transforming(name));
        } catch (Throwable failure) { // which the JVM would ignore
            LockOrder.broken(name, failure);
            return null;
        }
    }

    private static boolean isOfTests(ProtectionDomain domain) {
        CodeSource its = domain == null ? null : domain.getCodeSource();
        return its == null || its.equals(LockAgent.class.getProtectionDomain().getCodeSource());
    }

    private static ClassTransform transforming(String name) {
        return (builder, element) -> {
            if (element instanceof MethodModel method) {
                builder.transformMethod(method, (inside, part) -> {
                    if (part instanceof CodeModel code) {
                        inside.transformCode(code, new Marks(name, method));
                    } else {
                        inside.with(part);
                    }
                });
            } else {
                builder.with(element);
            }
        };
    }

    private static final class Marks implements CodeTransform {
        private final String owner;
        private final MethodModel method;
        private final boolean isOfLock;

        /// The field that was read last, which has the lock.
        private String field;

        Marks(String owner, MethodModel method) {
            this.owner = owner;
            this.method = method;
            this.isOfLock = EXPLICIT.contains(owner) || owner.equals(HELD);
            this.field = owner.replace('/', '.');
        }

        private boolean isOneOf(Set<String> names) {
            return isOfLock && names.contains(method.methodName().stringValue());
        }

        @Override
        public void atStart(CodeBuilder builder) {
            if (method.flags().has(AccessFlag.SYNCHRONIZED)) {
                if (method.flags().has(AccessFlag.STATIC)) {
                    builder.loadConstant(ClassDesc.ofInternalName(owner));
                } else {
                    builder.aload(0);
                }
                call(builder, "entering");
            } else if (isOneOf(WAITING)) {
                builder.aload(0);
                call(builder, "entering");
            } else if (isOneOf(LEAVING)) {
                builder.aload(0)
                        .invokestatic(ORDER, "left", MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_Object));
            }
        }

        private void call(CodeBuilder builder, String hook) {
            builder.loadConstant(field).invokestatic(ORDER, hook, OF_LOCK);
        }

        @Override
        public void accept(CodeBuilder builder, CodeElement element) {
            switch (element) {
                case FieldInstruction read ->
                    field = read.owner().asInternalName().replace('/', '.') + "."
                            + read.name().stringValue();
                case MonitorInstruction monitor
                when monitor.opcode() == Opcode.MONITORENTER -> {
                    builder.dup();
                    call(builder, "entering");
                }
                case InvokeInstruction call -> invoked(builder, call);
                case ReturnInstruction _
                when isOneOf(TRYING) ->
                    builder.dup()
                            .aload(0)
                            .invokestatic(
                                    ORDER,
                                    "tried",
                                    MethodTypeDesc.of(
                                            ConstantDescs.CD_void, ConstantDescs.CD_boolean, ConstantDescs.CD_Object));
                default -> {}
            }
            builder.with(element);
        }

        /// Locks that are taken by a call: the stack has nothing but the lock.
        private void invoked(CodeBuilder builder, InvokeInstruction call) {
            String type = call.owner().asInternalName();
            boolean hasNoArgument = call.type().stringValue().startsWith("()");
            if (!hasNoArgument || isOfLock || !CALLED.contains(type)) {
                return;
            }
            switch (call.name().stringValue()) {
                case "lock", "lockInterruptibly", "hold", "held" -> {
                    builder.dup();
                    call(builder, "entering");
                }
                case "tryLock" -> {
                    builder.dup();
                    call(builder, "trying");
                }
                default -> {}
            }
        }
    }
}
