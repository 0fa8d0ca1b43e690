"""The daemon keeps the index equal to the vault and carries out what agents and the vault's owner ask for."""
