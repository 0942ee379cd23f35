import { type Lab, startLab } from '../../../lab/cli/lab-compose.ts'
import { openLog } from '../../../src/report/logging.ts'
import type { Clock } from '../../../src/core/index.ts'
import type { RecordedRequest } from '../../../lab/index.ts'

const ANY = { proxy: 0, admin: 0, identity: 0, identityTls: 0, backend: 0, sts: 0, workspace: 0, metadata: 0 }

/** The lab as `extauth lab` runs it, on free ports. */
export const startTestLab = (options: { clock?: Clock; backendClock?: Clock } = {}): Promise<Lab> =>
  startLab({ ports: ANY, log: openLog({ level: 'silent' }), ...options })

/** Headers of a caller with a token of the lab's identity provider. */
export async function callerHeaders(
  lab: Lab,
  claims: Parameters<Lab['identity']['mint']>[0] = { sub: 'alice', groups: ['admins', 'dev'] },
): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await lab.identity.mint(claims)}` }
}

const REQUEST = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'show_request',
    arguments: {},
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
}

/** Calls a tool in one POST (2026-07-28): what the client gets, and what the backend saw of it. */
export async function callTool(
  lab: Lab,
  path: string,
  headers: Record<string, string> = {},
  name = 'show_request',
  args: object = {},
): Promise<{ status: number; headers: Headers; body: Record<string, unknown>; seen: RecordedRequest | undefined }> {
  const before = lab.backend.requests().at(-1)?.number ?? 0
  const response = await fetch(`${lab.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
      ...headers,
    },
    body: JSON.stringify({ ...REQUEST, params: { ...REQUEST.params, name, arguments: args } }),
  })
  const body = (await response.json()) as Record<string, unknown>
  const last = lab.backend.requests().at(-1)
  return {
    status: response.status,
    headers: response.headers,
    body,
    seen: (last?.number ?? 0) > before ? last : undefined,
  }
}

/** Values of a header in a flat list, in order; `name` is lower-case. */
export const valuesOf = (headers: readonly string[] | undefined, name: string): string[] =>
  (headers ?? []).filter((_, at, all) => at % 2 === 1 && all[at - 1]?.toLowerCase() === name)

/** `error.data.reason` of an MCP failure. */
export const reasonOf = (body: Record<string, unknown>): unknown =>
  (body['error'] as { data?: { reason?: unknown } } | undefined)?.data?.reason
