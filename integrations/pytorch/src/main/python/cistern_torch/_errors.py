class CisternError(RuntimeError):
    """Cistern refuses; the message says what, why and what to do."""
