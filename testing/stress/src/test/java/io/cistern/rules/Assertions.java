package io.cistern.rules;

import com.tngtech.archunit.core.domain.AccessTarget.CodeUnitAccessTarget;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/// Finds out whether a test reaches an assertion, through methods of tests and test kits that it calls.
final class Assertions {
    /// Owners of methods whose call is an assertion.
    private static final List<String> ASSERTING = List.of(
            "org.assertj.core.",
            "org.junit.jupiter.api.Assertions",
            "java.lang.AssertionError",
            "com.tngtech.archunit.lang.",
            "com.tngtech.archunit.library.",
            "org.jetbrains.lincheck.");

    /// Those that reach one, and those that are known to reach none.
    private final Map<JavaCodeUnit, Boolean> known = new HashMap<>();

    boolean reachedFrom(JavaCodeUnit caller) {
        Set<JavaCodeUnit> seen = new HashSet<>(Set.of(caller));
        Deque<JavaCodeUnit> next = new ArrayDeque<>(seen);
        while (!next.isEmpty()) {
            JavaCodeUnit unit = next.remove();
            if (known.getOrDefault(unit, false) || calls(unit).anyMatch(Assertions::isAssertion)) {
                known.put(caller, true);
                return true;
            }
            calls(unit)
                    .filter(call -> isTestCode(call.getTargetOwner()))
                    .flatMap(Assertions::implementations)
                    .filter(called -> known.getOrDefault(called, true) && seen.add(called))
                    .forEach(next::add);
        }
        seen.forEach(unit -> known.put(unit, false));
        return false;
    }

    private static Stream<JavaAccess<? extends CodeUnitAccessTarget>> calls(JavaCodeUnit unit) {
        return Stream.concat(unit.getCallsFromSelf().stream(), unit.getCodeUnitReferencesFromSelf().stream());
    }

    private static boolean isAssertion(JavaAccess<? extends CodeUnitAccessTarget> call) {
        String owner = call.getTargetOwner().getFullName();
        if (owner.startsWith("org.mockito.")) {
            return call.getName().startsWith("verify");
        }
        return ASSERTING.stream().anyMatch(owner::startsWith) && !isSubject(call);
    }

    /// AssertJ's `assertThat(x)` and `as(…)` alone check nothing.
    private static boolean isSubject(JavaAccess<? extends CodeUnitAccessTarget> call) {
        String name = call.getName();
        boolean factory = call.getTargetOwner().getFullName().equals("org.assertj.core.api.Assertions")
                && !name.startsWith("fail")
                && !name.equals("assertThatThrownBy");
        return factory || name.equals("as") || name.equals("describedAs");
    }

    /// Whether the build looks for tests in the folder of a class.
    static boolean isOfTests(JavaClass type) {
        return path(type).contains("/test-classes/");
    }

    private static boolean isTestCode(JavaClass type) {
        return isOfTests(type) || path(type).contains("/testing/");
    }

    private static String path(JavaClass type) {
        return type.getSource().map(source -> source.getUri().getPath()).orElse("");
    }

    /// The method that is called, and those that override it.
    private static Stream<JavaCodeUnit> implementations(JavaAccess<? extends CodeUnitAccessTarget> call) {
        CodeUnitAccessTarget target = call.getTarget();
        Stream<JavaCodeUnit> declared = target.resolveMember().stream().map(JavaCodeUnit.class::cast);
        Stream<JavaCodeUnit> overriding = call.getTargetOwner().getAllSubclasses().stream()
                .flatMap(type -> type.getCodeUnits().stream())
                .filter(unit -> unit.getName().equals(target.getName()) && !unit.isConstructor());
        return Stream.concat(declared, overriding);
    }
}
