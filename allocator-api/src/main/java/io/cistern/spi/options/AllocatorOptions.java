package io.cistern.spi.options;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The options of one spec. The provider reads each option by the method for its type. If the spec has an
/// option that the provider has not read when its `open` returns, opening fails.
///
/// Every method returns empty if the spec does not have the key. For a value of another type, it throws a
/// [io.cistern.errors.ConfigurationException] that names the key and the valid values.
public interface AllocatorOptions {
    /// Returns the value as text.
    Optional<String> text(String key);

    /// Returns a number of bytes. It is written as a number, such as `1048576`; with a unit, which is a
    /// power of 1024, such as `64k`, `512m`, `8g` or `0.5GiB`; or as a share of the device's memory, such
    /// as `0.5` or `50%`. A share is refused if the devices differ in size.
    Optional<Long> bytes(String key);

    /// Returns a whole number between two bounds, both included.
    Optional<Long> number(String key, long least, long most);

    /// Returns a fraction between 0 and 1, both included: `0.5`, or `50%`.
    Optional<Double> fraction(String key);

    /// Returns a flag: `true` or `false`, or PyTorch's `True` or `False`.
    Optional<Boolean> flag(String key);

    /// Returns one of several words.
    Optional<String> choice(String key, List<String> words);

    /// Returns one of the constants of an enum, each written as its `toString`.
    ///
    /// @throws io.cistern.errors.ConfigurationException if another word is given
    default <E extends Enum<E>> Optional<E> choice(String key, Class<E> type) {
        E[] constants = type.getEnumConstants();
        List<String> words = new ArrayList<>();
        for (E constant : constants) {
            words.add(constant.toString());
        }
        Optional<String> word = choice(key, words);
        return word.isEmpty() ? Optional.empty() : Optional.of(constants[words.indexOf(word.get())]);
    }

    /// Returns a list: `[a,b]`, or one value alone.
    Optional<List<String>> list(String key);

    /// Returns the options that are written inside the value of a key, such as those of another program:
    /// `key="a:1,b:[2,3]"`. An inner option that is never read is an error, too.
    Optional<AllocatorOptions> nested(String key);
}
