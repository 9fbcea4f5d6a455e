class CisternError(RuntimeError):
    """Cistern refused a call; the message says which, why, and what to do."""
