import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { LAB_AUDIENCE } from '../../lab/index.ts'

/** Names of the servers that it lists, in the order of its answers. */
export const LISTED: readonly string[] = Array.from({ length: 25 }, (_, index) => `com.example/server-${100 + index}`)
export const REGISTRY_PATH = '/registry/default/v0.1/servers'

/** Writes a registry for callers of this issuer, beside the configuration of the proxies; gives its file. */
export async function writeRegistry(directory: string, issuerUrl: string): Promise<string> {
  const folder = path.join(directory, 'registry')
  await mkdir(folder)
  const servers = LISTED.map((name) => ({
    server: {
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name,
      description: 'One of many',
      version: '1.0.0',
      remotes: [{ type: 'streamable-http', url: `https://mcp.example.com/${name.slice(-3)}` }],
    },
  }))
  await writeFile(path.join(folder, 'servers.json'), JSON.stringify({ servers }))
  const registry = {
    auth: {
      mode: 'oauth',
      oauth: {
        resourceUrl: 'http://127.0.0.1/registry',
        providers: [{ name: 'lab', issuerUrl, audience: LAB_AUDIENCE }],
      },
    },
    registries: [{ name: 'default', source: { file: 'servers.json' } }],
  }
  const file = path.join(folder, 'registry.json')
  await writeFile(file, JSON.stringify(registry))
  return file
}
