//! MCP servers whose tools a gate has.
