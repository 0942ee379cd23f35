import type { Log } from '../../../src/core/index.ts'
import { type Lab, startLab } from '../../../lab/cli/lab-compose.ts'

/** A log that keeps its lines, so that tests can look for what must not be there. */
export interface RecordedLog extends Log {
  readonly lines: string[]
}

export function recordLog(): RecordedLog {
  const lines: string[] = []
  const write = (fields: object, message: string): void => void lines.push(`${JSON.stringify(fields)} ${message}`)
  return { lines, debug: write, info: write, warn: write, error: write }
}

export interface TestLab extends Lab {
  readonly log: RecordedLog
  /** A token of the lab's identity provider. */
  token(claims: {
    sub: string
    groups?: string[]
    opaque?: boolean
    ttlSeconds?: number
    aud?: string[]
    claims?: Record<string, string>
  }): Promise<string>
}

/** The whole lab on free ports: the real proxy with config/lab and every demo service. */
export async function openLab(options: Partial<Parameters<typeof startLab>[0]> = {}): Promise<TestLab> {
  const log = recordLog()
  const lab = await startLab({
    ports: { proxy: 0, admin: 0, identity: 0, identityTls: 0, backend: 0, sts: 0, workspace: 0, metadata: 0 },
    log,
    ...options,
  })
  return {
    ...lab,
    log,
    async token(wanted) {
      const response = await fetch(`${lab.identity.url}/lab/token`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ttlSeconds: 300, ...wanted }),
      })
      const { access_token: token } = (await response.json()) as { access_token?: string }
      if (token === undefined) throw new Error(`no token: ${response.status}`)
      return token
    },
  }
}

/** A JSON-RPC call as curl would send it (2025-11-25 without a session, or `initialize`). */
export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
  })
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } },
}
