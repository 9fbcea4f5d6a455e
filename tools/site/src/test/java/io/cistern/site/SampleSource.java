package io.cistern.site;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A sample as a source that a compiler takes: statements become a method of a class that knows the names which
/// pages use ([SampleScope]) and has imports. A type is a file already, but for its package.
record SampleSource(String className, String text) {
    private static final Pattern PACKAGE = Pattern.compile("(?m)^package ([\\w.]+);");
    private static final Pattern TYPE =
            Pattern.compile("(?m)^(?:public |final |abstract )*(?:class|interface|record|enum) (\\w+)");

    private static final String IMPORTS = String.join(
            "",
            List.of(
                            "ai.onnxruntime",
                            "io.cistern",
                            "io.cistern.async.sharing",
                            "io.cistern.adaptors",
                            "io.cistern.hazards",
                            "io.cistern.buffers",
                            "io.cistern.buffers.dlpack",
                            "io.cistern.caching.options",
                            "io.cistern.cuda",
                            "io.cistern.diagnostics",
                            "io.cistern.errors",
                            "io.cistern.graph",
                            "io.cistern.handles",
                            "io.cistern.javacpp",
                            "io.cistern.jcuda",
                            "io.cistern.loader.functions",
                            "io.cistern.nccl",
                            "io.cistern.observability",
                            "io.cistern.onnxruntime",
                            "io.cistern.pressure",
                            "io.cistern.spi",
                            "io.cistern.spi.catalog",
                            "io.cistern.testkit",
                            "java.lang.foreign",
                            "java.nio.file",
                            "java.util",
                            "java.util.concurrent",
                            "java.util.concurrent.locks",
                            "jcuda.driver",
                            "org.bytedeco.cuda.cublas",
                            "org.bytedeco.cuda.global",
                            "org.bytedeco.javacpp",
                            "static io.cistern.jcuda.CisternMalloc")
                    .stream()
                    .map(name -> "import " + name + ".*;\n")
                    .toList());

    static SampleSource of(Sample sample) {
        String code = complete(sample.code());
        Matcher named = PACKAGE.matcher(code);
        if (named.find()) {
            return new SampleSource(named.group(1) + "." + typeIn(code), code);
        }
        String home = packageOf(sample.page());
        if (TYPE.matcher(code).find()) { // a file to paste, with its own imports
            return new SampleSource(home + "." + typeIn(code), "package " + home + ";\n" + code);
        }
        if (code.startsWith("import ")) {
            return new SampleSource(
                    home + "." + sample.name(), "package " + home + ";\n" + code + "class " + sample.name() + " {}\n");
        }
        return new SampleSource(
                home + "." + sample.name(),
                "package " + home + ";\n" + IMPORTS + "public class " + sample.name()
                        + " extends io.cistern.site.SampleScope {\npublic Object run(" + sample.given()
                        + ") throws Exception {\nif (true) {\n" + code + "}\nreturn null;\n}\n}\n");
    }

    /// `…` stands for what a reader puts there.
    private static String complete(String code) {
        String body = TYPE.matcher(code).find() ? "{ throw new UnsupportedOperationException(); }" : "{ }";
        return code.replace("{ … }", body)
                .replace("= …;", "= null;")
                .replace(", …)", ")")
                .replaceAll("(?m)^(\\s*)…", "$1//");
    }

    private static String typeIn(String code) {
        Matcher type = TYPE.matcher(code);
        if (!type.find()) {
            throw new IllegalArgumentException("no type in " + code);
        }
        return type.group(1);
    }

    private static String packageOf(Page page) {
        return "sample." + page.file().toString().replace(".md", "").replaceAll("\\W", "_");
    }
}
