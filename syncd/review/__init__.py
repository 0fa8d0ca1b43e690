"""Review lists the captures that wait for their owner's decision, suggests where each belongs, and archives dismissed or expired ones."""
