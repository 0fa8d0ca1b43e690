"""Review lists the captures that wait for the owner's decision, suggests a folder for each, and archives dismissed or expired ones."""
