/** An entry of a registry of thousands: of the usual length, all valid, no two alike. */
export const registryEntry = (index: number): object => ({
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: `com.example.bench/server-${String(index).padStart(6, '0')}`,
  description: 'A server that stands for thousands like it, with a description of the usual length',
  version: '1.0.0',
  repository: { url: `https://github.com/example/server-${index}`, source: 'github' },
  remotes: [{ type: 'streamable-http', url: `https://server-${index}.example.com/mcp` }],
  packages: [
    { registryType: 'npm', identifier: `@example/server-${index}`, version: '1.0.0', transport: { type: 'stdio' } },
  ],
})
