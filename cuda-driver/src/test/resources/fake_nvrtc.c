/* A compiler that takes any program but one with "error" in it, and returns what it was given as a comment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char source[256]; char name[64]; char text[1024]; } program;

int fake_alive;

int nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 6; return 0; }
const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }

int nvrtcCreateProgram(program **out, const char *source, const char *name, int headers, const char *const *h, const char *const *i) {
    if (headers || h || i) return 3;
    *out = calloc(1, sizeof(program));
    snprintf((*out)->source, sizeof (*out)->source, "%s", source);
    snprintf((*out)->name, sizeof (*out)->name, "%s", name);
    fake_alive++;
    return 0;
}

int nvrtcDestroyProgram(program **p) { free(*p); *p = 0; fake_alive--; return 0; }

int nvrtcCompileProgram(program *p, int count, const char *const *options) {
    if (strstr(p->source, "error")) {
        snprintf(p->text, sizeof p->text, "%s(1): error: identifier \"error\" is undefined", p->name);
        return 6;
    }
    snprintf(p->text, sizeof p->text, "// %s", p->source);
    for (int i = 0; i < count; i++) snprintf(p->text + strlen(p->text), 64, " %s", options[i]);
    return 0;
}

int nvrtcGetPTXSize(program *p, size_t *n) { *n = strlen(p->text) + 1; return 0; }
int nvrtcGetPTX(program *p, char *out) { strcpy(out, p->text); return 0; }
int nvrtcGetProgramLogSize(program *p, size_t *n) { *n = strlen(p->text) + 1; return 0; }
int nvrtcGetProgramLog(program *p, char *out) { strcpy(out, p->text); return 0; }
