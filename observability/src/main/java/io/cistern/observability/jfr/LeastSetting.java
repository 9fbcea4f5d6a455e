package io.cistern.observability.jfr;

import java.util.Comparator;
import java.util.OptionalLong;
import java.util.Set;
import jdk.jfr.SettingControl;

/// A setting that is a quantity. If several recordings set it, the least value applies; a text that does not
/// parse is ignored.
abstract class LeastSetting extends SettingControl {
    private final String usual;
    private String value;

    LeastSetting(String usual) {
        this.usual = usual;
        value = usual;
    }

    abstract OptionalLong parse(String text);

    /// Makes a quantity the one in force.
    abstract void apply(long quantity);

    @Override
    public String combine(Set<String> values) {
        return values.stream()
                .filter(text -> parse(text).isPresent())
                .min(Comparator.comparingLong(text -> parse(text).orElseThrow()))
                .orElse(usual);
    }

    @Override
    public void setValue(String text) {
        parse(text).ifPresent(quantity -> {
            apply(quantity);
            value = text;
        });
    }

    @Override
    public String getValue() {
        return value;
    }

    boolean isKnown() {
        return parse(value).isPresent();
    }
}
