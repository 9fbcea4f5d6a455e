package io.cistern.spark;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/// A standalone cluster on loopback: a master and workers as processes of their own, with the class path of
/// this one. Worker i has the GPU of address i, and a host name of its own, since no second attempt at a task
/// is made on the host of the first.
final class SparkCluster implements AutoCloseable {
    private static final String MASTER = "org.apache.spark.deploy.master.Master";
    private static final String WORKER = "org.apache.spark.deploy.worker.Worker";
    private static final String EXECUTOR = "CoarseGrainedExecutorBackend";

    private final Path home;
    private final int port;
    private final List<Process> processes = new ArrayList<>();

    private SparkCluster(Path home) throws IOException {
        this.home = home;
        this.port = freePort();
        Files.createDirectories(home.resolve("jars")); // where Spark's launcher looks for Spark
    }

    static SparkCluster start(Path home, int workers) throws IOException {
        SparkCluster cluster = new SparkCluster(home);
        cluster.run("master", "127.0.0.1", MASTER, List.of("--port", "" + cluster.port), List.of());
        for (int worker = 0; worker < workers; worker++) {
            cluster.startWorker(worker);
        }
        return cluster;
    }

    private void startWorker(int number) throws IOException {
        Path discovery = home.resolve("gpus-" + number + ".sh");
        Files.writeString(discovery, "#!/bin/sh\necho '{\"name\": \"gpu\", \"addresses\": [\"" + number + "\"]}'\n");
        Files.setPosixFilePermissions(discovery, PosixFilePermissions.fromString("rwx------"));
        run(
                "worker-" + number,
                "127.0.0." + (number + 1),
                WORKER,
                List.of(
                        "-c",
                        "2",
                        "-m",
                        "2g",
                        "-d",
                        home.resolve("work-" + number).toString(),
                        master()),
                List.of(
                        "-Dspark.worker.resource.gpu.amount=1",
                        "-Dspark.worker.resource.gpu.discoveryScript=" + discovery,
                        "-Dspark.worker.cleanup.enabled=false"));
    }

    private void run(String name, String host, String mainClass, List<String> arguments, List<String> options)
            throws IOException {
        List<String> line = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                "-Xmx256m",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC"));
        line.addAll(options);
        line.addAll(List.of(mainClass, "--host", host, "--webui-port", "0"));
        line.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(line)
                .redirectErrorStream(true)
                .redirectOutput(home.resolve(name + ".log").toFile());
        builder.environment().put("SPARK_HOME", home.toString());
        builder.environment().put("SPARK_SCALA_VERSION", "2.13");
        builder.environment().put("SPARK_DIST_CLASSPATH", System.getProperty("java.class.path"));
        builder.environment().put("SPARK_LOCAL_IP", host);
        builder.environment().keySet().removeIf(key -> key.startsWith("CISTERN_"));
        processes.add(builder.start());
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    String master() {
        return "spark://127.0.0.1:" + port;
    }

    /// The executors that live now.
    List<ProcessHandle> executors() {
        return processes.stream()
                .flatMap(Process::descendants)
                .filter(process -> commandLine(process).contains(EXECUTOR))
                .toList();
    }

    /// Its words, with a 0 behind each; longer than Java's own view of a process has them.
    private static String commandLine(ProcessHandle process) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(process.pid()), "cmdline"));
        } catch (IOException ended) {
            return "";
        }
    }

    /// Kills an executor with SIGKILL.
    ///
    /// @param executorId as Spark names it
    void kill(String executorId) {
        Optional<ProcessHandle> found = executors().stream()
                .filter(process -> commandLine(process).contains("--executor-id\0" + executorId + "\0"))
                .findFirst();
        if (!found.orElseThrow().destroyForcibly()) {
            throw new IllegalStateException("executor " + executorId + " can't be killed");
        }
    }

    @Override
    public void close() {
        executors().forEach(ProcessHandle::destroyForcibly);
        processes.forEach(Process::destroyForcibly);
        processes.forEach(SparkCluster::awaitEnd);
    }

    private static void awaitEnd(Process process) {
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
