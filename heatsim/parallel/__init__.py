"""Run one simulation on several processes, called ranks: their messages, and how the job ends if a rank fails."""
