import type { Attributes } from '@opentelemetry/api'
import type { IncomingHttpHeaders } from 'node:http'

/** Bodies that are read for the method of a request; larger ones are those of uploads. */
const MAX_BODY_BYTES = 64 * 1024

const METHOD = /^[\w$./-]{1,64}$/
/** Names of tools and prompts; what looks like something else is left out. */
const NAME = /^[\w.:/ -]{1,128}$/
const VERSION = /^\d{4}-\d\d-\d\d$/

/** What MCP says of a request in its headers (2026-07-28): method, name and revision, by the conventions for MCP. */
export function attributesOfHeaders(headers: IncomingHttpHeaders): Attributes {
  const version = headers['mcp-protocol-version']
  return {
    ...attributesOf(headers['mcp-method'], headers['mcp-name']),
    ...(typeof version === 'string' && VERSION.test(version) ? { 'mcp.protocol.version': version } : {}),
  }
}

/** The same of a body that is kept, for requests whose headers do not say it (2025-11-25). */
export function attributesOfBody(bytes: Buffer): Attributes {
  if (bytes.length > MAX_BODY_BYTES) return {}
  try {
    const message: unknown = JSON.parse(bytes.toString('utf8'))
    const { method, params } = message as { method?: unknown; params?: { name?: unknown } | null }
    return attributesOf(method, params?.name)
  } catch {
    return {}
  }
}

function attributesOf(method: unknown, name: unknown): Attributes {
  if (typeof method !== 'string' || !METHOD.test(method)) return {}
  const isNamed = typeof name === 'string' && NAME.test(name)
  return {
    'mcp.method.name': method,
    ...(method === 'tools/call' ? { 'gen_ai.operation.name': 'execute_tool' } : {}),
    ...(isNamed && method === 'tools/call' ? { 'gen_ai.tool.name': name } : {}),
    ...(isNamed && method === 'prompts/get' ? { 'gen_ai.prompt.name': name } : {}),
  }
}
