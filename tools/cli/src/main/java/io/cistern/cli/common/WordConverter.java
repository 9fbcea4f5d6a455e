package io.cistern.cli.common;

import io.cistern.internal.names.NearestName;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Reads enum constants in lower case, as people write them; any letter case is accepted.
public record WordConverter<E extends Enum<E>>(Class<E> type) implements ITypeConverter<E> {
    @Override
    public E convert(String text) {
        return constants().stream()
                .filter(each -> word(each).equalsIgnoreCase(text))
                .findFirst()
                .orElseThrow(() -> new TypeConversionException("'" + text + "' is not one of these, nearest first: "
                        + String.join(", ", NearestName.first(text, words()))));
    }

    private List<E> constants() {
        return Arrays.asList(type.getEnumConstants());
    }

    private List<String> words() {
        return constants().stream().map(WordConverter::word).toList();
    }

    private static String word(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }
}
