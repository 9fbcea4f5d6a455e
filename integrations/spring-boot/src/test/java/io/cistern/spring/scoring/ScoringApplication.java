package io.cistern.spring.scoring;

import io.cistern.CudaStreamPool;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.ScopeOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.DeviceOutOfMemoryException;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/// The program of the page about Spring Boot.
@SpringBootApplication
public class ScoringApplication {
    public static void main(String[] arguments) {
        SpringApplication.run(ScoringApplication.class, arguments);
    }

    /// One pool for all requests; it closes with the application.
    @Bean
    MemoryPool scores(DeviceMemory memory) {
        return MemoryPool.builder(memory)
                .spec("caching")
                .tag("scores")
                .limitBytes(256L << 20)
                .open();
    }

    /// Streams that live as long as the application: a pool keeps its memory for each of them.
    @Bean
    CudaStreamPool streams(DeviceMemory memory) {
        return CudaStreamPool.open(memory, 0, 4);
    }

    @RestController
    static class Scores {
        private final MemoryPool scores;
        private final CudaStreamPool streams;

        Scores(MemoryPool scores, CudaStreamPool streams) {
            this.scores = scores;
            this.streams = streams;
        }

        @GetMapping("/score")
        String score(@RequestParam long mib) {
            ScopeOptions ofRequest = ScopeOptions.all().limit(MemoryLimit.of("request", 64L << 20));
            return scores.call(ofRequest, () -> {
                try (DeviceBuffer x = DeviceBuffer.allocate(mib << 20, streams.next())) {
                    x.fill((byte) 1); // your kernels take x.address()
                    return "scored " + mib + " MiB\n";
                }
            });
        }

        @ExceptionHandler
        ResponseEntity<String> outOfMemory(DeviceOutOfMemoryException e) {
            HttpStatusCode status = HttpStatusCode.valueOf(e.isAboveLimit() ? 413 : 503); // too large, or try later
            return ResponseEntity.status(status).body(e.getMessage() + "\n");
        }
    }
}
