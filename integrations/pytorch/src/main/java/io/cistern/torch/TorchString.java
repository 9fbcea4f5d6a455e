package io.cistern.torch;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorSpec;
import java.lang.System.Logger.Level;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/// The options that the environment sets for PyTorch's own allocator. They also apply to `caching`, which
/// has the same options.
///
/// @param variable the variable that PyTorch reads
/// @param options by their keys; each value is a list, of one element unless it was written in brackets
record TorchString(String variable, Map<String, List<String>> options) {
    private static final System.Logger LOG = System.getLogger(TorchString.class.getName());
    private static final String ALLOCATOR = "caching";
    private static final String OPTION = "pytorch";

    /// PyTorch reads the first one that is set.
    private static final List<String> VARIABLES = List.of("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF");

    /// PyTorch reads it if it was built for ROCm.
    private static final String ROCM = "PYTORCH_HIP_ALLOC_CONF";

    /// Finds the string. Warns of a variable that is set but not read.
    ///
    /// @throws ConfigurationException if it does not follow PyTorch's syntax
    static Optional<TorchString> in(Map<String, String> environment) {
        List<String> set = VARIABLES.stream()
                .filter(name -> !text(environment, name).isBlank())
                .toList();
        if (set.size() > 1 && !text(environment, set.get(0)).equals(text(environment, set.get(1)))) {
            warn(set.get(1) + " has no effect: PyTorch reads " + set.get(0) + ", which is also set");
        }
        if (!text(environment, ROCM).isBlank()) {
            warn(ROCM + " has no effect: it is for AMD's GPUs; set " + VARIABLES.getLast());
        }
        return set.stream().findFirst().map(name -> parse(name, text(environment, name)));
    }

    private static String text(Map<String, String> environment, String name) {
        return environment.getOrDefault(name, "");
    }

    private static TorchString parse(String variable, String text) {
        try {
            return new TorchString(
                    variable, AllocatorSpec.parse(variable + ":" + text).options());
        } catch (ConfigurationException e) {
            throw new ConfigurationException(
                    variable + " is '" + text + "', which is not of the form key:value,key:[value,value]", e);
        }
    }

    /// Returns a spec with these options, except those that it sets itself. Warns of options without
    /// effect.
    String addedTo(AllocatorSpec spec) {
        if (!spec.name().equals(ALLOCATOR) || spec.options().containsKey(OPTION)) {
            warn(variable + " has no effect: the allocator is " + spec + "; it applies only to '" + ALLOCATOR
                    + "' without the option '" + OPTION + "'");
            return spec.text();
        }
        Map<String, List<String>> added = new LinkedHashMap<>(options);
        if (added.keySet().removeAll(spec.options().keySet())) {
            warn(variable + " has no effect on options that " + spec + " sets itself");
        }
        String text = added.entrySet().stream()
                .map(each -> each.getKey() + ":" + text(each.getValue()))
                .collect(Collectors.joining(","));
        return added.isEmpty()
                ? spec.text()
                : spec.text() + (spec.options().isEmpty() ? ":" : ",") + OPTION + "=\"" + text + "\"";
    }

    private static String text(List<String> values) {
        return values.size() == 1 ? values.getFirst() : "[" + String.join(",", values) + "]";
    }

    static void warn(String what) {
        LOG.log(Level.WARNING, what);
    }
}
