"""The real HTTP server over an engine that answers with given texts; docs/scripted-server.md."""
