"""What Memex is built from: lock files, licences and known vulnerabilities of its libraries."""
