package io.cistern.spring.scoring;

import io.cistern.CudaStream;
import io.cistern.CudaStreamPool;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.ScopeOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.DeviceOutOfMemoryException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

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
    record Scores(MemoryPool scores, CudaStreamPool streams) {
        private static final Logger LOG = LoggerFactory.getLogger(Scores.class);
        private static final String REQUEST = "http-request";

        @GetMapping("/score")
        String score(@RequestParam int mib) {
            if (mib < 1) {
                throw new ResponseStatusException(HttpStatus.BAD_REQUEST);
            }
            ScopeOptions ofRequest = ScopeOptions.all().limit(MemoryLimit.of(REQUEST, 64L << 20));
            return scores.call(ofRequest, () -> {
                CudaStream stream = streams.next();
                try (DeviceBuffer x = DeviceBuffer.allocate((long) mib << 20, stream);
                        DeviceBuffer y = DeviceBuffer.allocate((long) mib << 20, stream)) {
                    x.fill((byte) 1);
                    y.copyFrom(x); // your kernels take x.address() and y.address()
                    return "scored " + mib + " MiB\n";
                }
            });
        }

        @ExceptionHandler
        ResponseEntity<String> outOfMemory(DeviceOutOfMemoryException e) {
            LOG.warn(e.getMessage());
            boolean isTooLarge = e.canNeverFit() || e.detail().contains(REQUEST + ": limit");
            return isTooLarge
                    ? ResponseEntity.status(413).body("request less\n")
                    : ResponseEntity.status(503).body("try again later\n");
        }
    }
}
