/* Cistern as the allocator of PyTorch, in a JVM inside the process: what libcistern_torch.so exports. The Python package
   cistern_torch loads it; so can a program in C or C++. The first call starts the JVM, which lives as long as the process.

   Environment:
     CISTERN_JAVA_HOME   the JDK or runtime, of Java 25; without it the distribution's own (../../runtime, seen from here), else
                         JAVA_HOME
     CISTERN_CLASSPATH   JARs besides the distribution's own (../../lib/X.jar), separated by ':'; FOLDER/X for all of a folder,
                         X being an asterisk
     CISTERN_JAVA_OPTS   options for the JVM, separated by blanks
     CISTERN_ALLOCATOR and all other settings: docs/settings.md

   Errors: in a process with PyTorch, a failing call throws an exception, which PyTorch turns into torch.OutOfMemoryError or
   RuntimeError. In other processes it returns null or a number other than 0, and cistern_error returns the message. A forked child of
   a process in which Cistern has started can't use Cistern.

   Threads: any. */
#ifndef CISTERN_TORCH_H
#define CISTERN_TORCH_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts Cistern with an allocator, such as "caching:fit=tight", or with the one that is configured (null), and with settings, lines
   such as "cistern.limit=8GiB" ("" for none). Returns 0 if Cistern has started, now or before. After a failure it may be called again,
   for example with another allocator. */
int cistern_start(const char* allocator, const char* settings);

/* Returns the message of the last failure on this thread. */
const char* cistern_error(void);

/* Runs a command and writes its answer: see TorchCommands.java. Returns 0 if the command succeeded. */
int cistern_command(const char* command, char* answer, size_t capacity);

/* The functions that PyTorch calls. The hooks for pools take C++ types and are in hooks.cpp. */
void* cistern_malloc(ssize_t size, int device, void* stream);
void cistern_free(void* block, ssize_t size, int device, void* stream);
void cistern_record_stream(void* block, void* stream);
void cistern_empty_cache(void);
void cistern_set_memory_fraction(double fraction, int device);

#ifdef __cplusplus
}
#endif

#endif
