package io.cistern.faults;

import java.lang.classfile.CodeElement;
import java.lang.classfile.instruction.InvokeDynamicInstruction;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.classfile.instruction.NewMultiArrayInstruction;
import java.lang.classfile.instruction.NewObjectInstruction;
import java.lang.classfile.instruction.NewPrimitiveArrayInstruction;
import java.lang.classfile.instruction.NewReferenceArrayInstruction;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// An error that the JVM throws in the middle of code, and where it may.
enum FaultKind {
    /// The Java heap is full: at what allocates, and at calls of collections that do.
    HEAP {
        @Override
        @Nullable
        String fails(CodeElement element) {
            return switch (element) {
                case NewObjectInstruction made ->
                    "new " + simple(made.className().asInternalName());
                case NewPrimitiveArrayInstruction _, NewReferenceArrayInstruction _, NewMultiArrayInstruction _ ->
                    "new array";
                case InvokeDynamicInstruction made -> "dynamic " + made.name().stringValue(); // also when it is linked
                case InvokeInstruction call -> allocates(call) ? called(call) : null;
                default -> null;
            };
        }

        @Override
        Error error(String site) {
            return new OutOfMemoryError("injected at " + site);
        }
    },

    /// The stack is full: at calls.
    STACK {
        @Override
        @Nullable
        String fails(CodeElement element) {
            // Before the object is made that a constructor is called on, nothing may be called: it is not seen here.
            return element instanceof InvokeInstruction call
                            && !call.name().equalsString("<init>")
                            && !call.owner().asInternalName().equals("java/util/Objects")
                    ? called(call)
                    : null;
        }

        @Override
        Error error(String site) {
            return new StackOverflowError("injected at " + site);
        }
    };

    private static final Set<String> ALLOCATING = Set.of(
            "add",
            "addAll",
            "addFirst",
            "addLast",
            "clone",
            "computeIfAbsent",
            "copyOf",
            "copyOfRange",
            "ensureCapacity",
            "entrySet",
            "forEach",
            "iterator",
            "keySet",
            "merge",
            "newKeySet",
            "of",
            "offer",
            "push",
            "start",
            "put",
            "putAll",
            "putIfAbsent",
            "stream",
            "toArray",
            "toList",
            "values",
            "valueOf");

    /// What may fail at an instruction, or null.
    abstract @Nullable String fails(CodeElement element);

    abstract Error error(String site);

    /// A list that is declared as an `ArrayList` has its room reserved by `ensureCapacity`; an `add` needs none.
    private static boolean allocates(InvokeInstruction call) {
        String owner = call.owner().asInternalName();
        if (owner.equals("java/util/ArrayList") && call.name().equalsString("add")) {
            return false;
        }
        boolean boxes = Set.of("java/lang/Long", "java/lang/Integer").contains(owner);
        boolean starts = owner.equals("java/lang/Thread"); // no thread is available then
        boolean collects = owner.startsWith("java/util/")
                && !owner.startsWith("java/util/concurrent/atomic/")
                && !owner.startsWith("java/util/concurrent/locks/");
        return (boxes || starts || collects || owner.startsWith("["))
                && ALLOCATING.contains(call.name().stringValue());
    }

    private static String called(InvokeInstruction call) {
        return simple(call.owner().asInternalName()) + "." + call.name().stringValue();
    }

    private static String simple(String internalName) {
        return internalName.substring(internalName.lastIndexOf('/') + 1);
    }
}
