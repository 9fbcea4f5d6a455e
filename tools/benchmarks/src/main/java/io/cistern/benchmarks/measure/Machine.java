package io.cistern.benchmarks.measure;

import io.cistern.cli.CisternCommand;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;

/// The machine that measures: its equipment, and how commands of steps become processes.
final class Machine {
    private static final Pattern WORD = Pattern.compile("'([^']*)'|(\\S+)");
    private static final Pattern VALUE = Pattern.compile("\\{([a-z-]+)(?::(\\w+))?}");
    private static final Pattern VARIABLE = Pattern.compile("([A-Z_]+)=(.*)");
    private static final int MAX_THREADS = 16;

    private final Path home;
    private final Path build;
    private final boolean simulated;
    private final Steps steps;
    private final Map<String, String> values = new HashMap<>();

    /// @param home the folder that contains `peers`, of the sources or of the kit
    Machine(Path home, Path results, String device, Steps steps) throws IOException {
        this.home = home;
        this.steps = steps;
        build = Files.createDirectories(results.resolve("build"));
        simulated = device.equals("simulated");
        values.putAll(steps.values());
        int processors = Runtime.getRuntime().availableProcessors();
        values.putAll(Map.of(
                "home", home.toString(),
                "build", build.toString(),
                "raw", results.resolve("raw").toString(),
                "device", device,
                "driver", simulated ? "simulated" : "cuda",
                "java-home", System.getProperty("java.home"),
                "class-path", System.getProperty("java.class.path"),
                "threads", Integer.toString(Math.min(MAX_THREADS, processors)),
                "sleep-gib", simulated ? "1" : "32"));
    }

    boolean has(String need) throws IOException, InterruptedException {
        return switch (need) {
            case "simulated" -> simulated;
            case "gpu" -> !simulated;
            case "two-gpus" -> !simulated && Integer.parseInt(value("gpus", "")) > 1;
            case "torch" -> !value("torch", "").isEmpty();
            case "nvcc", "gcc", "cc" ->
                !output("sh", "-c", "command -v " + need).isEmpty();
            case "tests" -> Files.isDirectory(home.resolve("dist/lib/tests"));
            default -> Files.exists(home.resolve(need)) || built(need);
        };
    }

    private boolean built(String file) throws IOException, InterruptedException {
        String command = steps.builds().getOrDefault(file, "");
        Path target = build.resolve(file);
        if (!simulated && !Files.exists(target) && has(command.split(" ", 0)[0])) {
            process(command, build.resolve(file + ".log").toFile()).start().waitFor();
        }
        return Files.exists(target);
    }

    /// Prepares a command. A log gets all its output; if the command names a file of raw output, that file gets
    /// its standard output instead.
    ProcessBuilder process(String command, File log) throws IOException, InterruptedException {
        File output = output(command, log);
        List<String> words = words(command.replace(Steps.MAY_FAIL, "").split(" > ", 0)[0]);
        ProcessBuilder process = new ProcessBuilder();
        Map<String, String> environment = process.environment();
        environment.put("NCCL_NVLS_ENABLE", "0"); // Multicast stays off on hosts that other people share.
        for (Matcher variable = VARIABLE.matcher(words.getFirst());
                variable.matches();
                variable = VARIABLE.matcher(words.getFirst())) {
            words.removeFirst();
            if (variable.group(2).isEmpty()) {
                environment.remove(variable.group(1));
            } else {
                environment.put(variable.group(1), variable.group(2));
            }
        }
        boolean jmh = words.getFirst().equals("jmh"); // It writes the file itself.
        return process.command(program(words, output))
                .redirectError(ProcessBuilder.Redirect.appendTo(log))
                .redirectOutput(ProcessBuilder.Redirect.appendTo(jmh ? log : output));
    }

    /// Returns the file that a command adds to, or the log if it names none.
    File output(String command, File log) {
        String[] parts = command.split(" > ", 0);
        return parts.length == 1 ? log : new File(value("raw"), parts[1]);
    }

    private List<String> words(String command) throws IOException, InterruptedException {
        List<String> words = new ArrayList<>();
        for (Matcher word = WORD.matcher(command); word.find(); ) {
            if (word.group(1) != null) {
                words.add(valued(word.group(1)));
            } else {
                words.addAll(List.of(valued(word.group(2)).split(" ", 0)));
            }
        }
        words.removeIf(String::isEmpty);
        return words;
    }

    private String valued(String word) throws IOException, InterruptedException {
        StringBuilder valued = new StringBuilder();
        Matcher value = VALUE.matcher(word);
        while (value.find()) {
            String of = value.group(2) == null ? "" : value.group(2);
            value.appendReplacement(valued, Matcher.quoteReplacement(value(value.group(1), of)));
        }
        return value.appendTail(valued).toString();
    }

    private String value(String name, String of) throws IOException, InterruptedException {
        String known = values.get(name);
        if (known != null) {
            return known;
        }
        String value = switch (name) {
            case "csv" -> csv(of);
            case "gpus" -> Long.toString(output("nvidia-smi", "-L").lines().count());
            case "torch" -> output("python3", "-c", "import torch, os; print(os.path.dirname(torch.__file__))");
            case "nccl" -> output("python3", "-c", "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])");
            case "nccl-option" ->
                value("nccl", "").isEmpty() ? "" : "-Dcistern.nccl.library=" + value("nccl", "") + "/lib/libnccl.so.2";
            case "cuda-libraries" ->
                output(
                        "python3",
                        "-c",
                        "import glob, nvidia; print(':'.join(f for p in nvidia.__path__ for f in glob.glob(p + '/*/lib')))");
            default -> throw new IllegalArgumentException("no value {" + name + "}");
        };
        if (of.isEmpty()) {
            values.put(name, value);
        }
        return value;
    }

    private String value(String name) {
        return Objects.requireNonNull(values.get(name), name);
    }

    /// Returns the output of a program; empty if it fails or does not exist.
    static String output(String... command) throws IOException, InterruptedException {
        try {
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            return process.waitFor() == 0 ? output.strip() : "";
        } catch (IOException _) {
            return "";
        }
    }

    /// Returns the file of a bundled or generated trace.
    private String csv(String trace) throws IOException, InterruptedException {
        Path file = build.resolve(trace + ".csv");
        if (!Files.exists(file)) {
            String resource = "/io/cistern/cli/traces/" + trace + ".csv.gz";
            try (InputStream packed = CisternCommand.class.getResourceAsStream(resource)) {
                if (packed == null) {
                    new ProcessBuilder(program(List.of("cistern", "trace", trace), file.toFile()))
                            .redirectOutput(file.toFile())
                            .start()
                            .waitFor();
                } else {
                    Files.copy(new GZIPInputStream(packed), file);
                }
            }
        }
        return file.toString();
    }

    /// Replaces the words `java`, `cistern`, `jmh` and `tests` by the programs that they stand for.
    private List<String> program(List<String> words, File output) {
        List<String> rest = words.subList(1, words.size());
        return switch (words.getFirst()) {
            case "java" -> java(value("class-path"), List.of(), rest);
            case "cistern" -> java(value("class-path"), List.of("io.cistern.cli.CisternCommand"), rest);
            case "jmh" -> {
                String[] usual = {"-foe", "true", "-prof", "gc", "-rf", "csv", "-rff", output.toString()};
                List<String> all = new ArrayList<>(rest);
                all.addAll(Arrays.asList(usual));
                yield java(value("class-path"), List.of("org.openjdk.jmh.Main"), all);
            }
            case "tests" -> {
                List<String> own = new ArrayList<>(rest);
                List<String> first = new ArrayList<>(
                        rest.stream().filter(word -> word.startsWith("-D")).toList());
                own.removeAll(first);
                String lib = home.resolve("dist/lib").toString();
                first.add("-Dcistern.testkit.driver=" + value("driver"));
                first.addAll(List.of("org.junit.platform.console.ConsoleLauncher", "@" + lib + "/tests/options"));
                yield java(lib + "/*" + File.pathSeparator + lib + "/tests/*", first, own);
            }
            default -> words;
        };
    }

    private static List<String> java(String classPath, List<String> first, List<String> rest) {
        List<String> words = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-cp",
                classPath));
        words.addAll(first);
        words.addAll(rest);
        return words;
    }
}
