package io.cistern.torch;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorSpec;
import java.lang.System.Logger.Level;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/// The options that a program gives PyTorch's own allocator in the environment. Where `caching` is chosen, they
/// apply to it, since it has the same ones.
///
/// @param variable the variable that PyTorch reads
/// @param options by their keys; each value is a list, of one element unless it was written in brackets
record TorchString(String variable, Map<String, List<String>> options) {
    private static final System.Logger LOG = System.getLogger(TorchString.class.getName());
    private static final String ALLOCATOR = "caching";
    private static final String OPTION = "pytorch";

    /// The first that is set is the one that PyTorch reads.
    private static final List<String> VARIABLES = List.of("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF");

    /// PyTorch reads it if it was built for ROCm.
    private static final String ROCM = "PYTORCH_HIP_ALLOC_CONF";

    /// Finds the string. Warns of a variable that is set and not read.
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

    /// Returns a spec with these options, but for those that it has by itself. Warns of what has no effect.
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
