package io.cistern.examples.spark.columns;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DataType;

/// The type of a column, in Arrow's layout.
sealed interface ColumnType permits FixedType, VariableType {
    /// Spark's types that are laid out so.
    List<DataType> sparkTypes();

    /// Returns how columns of one of Spark's types are laid out.
    ///
    /// @param column the column's name, for the message
    /// @throws UnsupportedOperationException if the type has no place in device columns
    static ColumnType of(String column, DataType type) {
        return all().filter(each -> each.sparkTypes().contains(type))
                .findFirst()
                .orElseThrow(() -> new UnsupportedOperationException("column '" + column + "' is of type "
                        + type.simpleString() + ", which device columns can't hold; valid: "
                        + String.join(
                                ", ",
                                all().flatMap(each -> each.sparkTypes().stream())
                                        .map(DataType::simpleString)
                                        .toList())));
    }

    private static Stream<ColumnType> all() {
        return Stream.concat(FixedType.ALL.stream(), Stream.of(VariableType.values()));
    }
}
