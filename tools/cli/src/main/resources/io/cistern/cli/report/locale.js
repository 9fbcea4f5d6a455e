// Before the chart library, which gives the browser's language to Intl: with LANG=POSIX, Chromium names one that Intl
// refuses, "en-US@posix".
Object.defineProperty(navigator, "language", { value: navigator.language.replace(/@.*/, "") });
