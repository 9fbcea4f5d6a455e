package io.cistern.guice;

import com.google.inject.TypeLiteral;
import com.google.inject.spi.TypeEncounter;
import com.google.inject.spi.TypeListener;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// Checks the methods of every type that Guice creates. An [InPool] that names an unknown pool, or whose
/// method can't run in a scope, becomes an error of the injector instead of a failure at the first call.
///
/// @param pools the names of the pools that exist
record PoolMethods(Set<String> pools) implements TypeListener {
    @Override
    public <I> void hear(TypeLiteral<I> type, TypeEncounter<I> encounter) {
        for (@Nullable Class<?> each = type.getRawType();
                each != null && each != Object.class;
                each = each.getSuperclass()) {
            for (Method method : each.getDeclaredMethods()) {
                check(method, encounter);
            }
        }
        for (Method method : type.getRawType().getMethods()) {
            if (method.isDefault()) { // of an interface
                check(method, encounter);
            }
        }
    }

    private void check(Method method, TypeEncounter<?> encounter) {
        InPool scope = method.getAnnotation(InPool.class);
        if (scope != null && !method.isSynthetic()) {
            check(method, scope.value(), encounter);
        }
    }

    private void check(Method method, String pool, TypeEncounter<?> encounter) {
        if (!pools.contains(pool)) {
            encounter.addError(
                    "@InPool(\"%s\") on %s: no pool has that name; known: %s", pool, method, new TreeSet<>(pools));
        }
        int never = Modifier.PRIVATE | Modifier.STATIC | Modifier.FINAL;
        if ((method.getModifiers() & never) != 0) {
            encounter.addError("@InPool on %s: a method that can't be overridden can't be run in a scope", method);
        }
    }
}
