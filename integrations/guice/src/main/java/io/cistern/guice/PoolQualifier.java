package io.cistern.guice;

import java.lang.annotation.Annotation;

/// Implements the annotation [Pool] with a value, as a key of bindings.
///
/// @param value the pool's name
@SuppressWarnings("BadAnnotationImplementation") // equals and hashCode below are those of an annotation
record PoolQualifier(String value) implements Pool {
    private static final int HASH_OF_NAME = 127 * "value".hashCode();

    @Override
    public Class<? extends Annotation> annotationType() {
        return Pool.class;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Pool pool && pool.value().equals(value);
    }

    @Override
    public int hashCode() {
        return HASH_OF_NAME ^ value.hashCode();
    }
}
