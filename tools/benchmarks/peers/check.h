// Ends the program at a call that does not return 0, with its place.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                             \
  do {                                                                                          \
    auto result_ = (call);                                                                      \
    if (result_ != 0) {                                                                         \
      fprintf(stderr, "%s:%d %s -> %d\n", __FILE__, __LINE__, #call, static_cast<int>(result_)); \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)
