import type { Attributes } from '@opentelemetry/api'
import type { IncomingHttpHeaders } from 'node:http'
import type { SecretMask } from '../core/index.ts'
import { isObject, parseMessage } from '../mcp/index.ts'

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

/** What a body that is kept says: method and name, and the trace that its client puts it in. */
export interface BodySaid {
  readonly attributes: Attributes
  /** `params._meta.traceparent` (MCP's conventions for trace context); not looked at yet. */
  readonly traceparent: string | undefined
}

/** The same of a body that is kept, for requests whose headers do not say it (2025-11-25). */
export function saidInBody(bytes: Buffer): BodySaid {
  const message = bytes.length > MAX_BODY_BYTES ? undefined : parseMessage(bytes)
  if (message?.kind !== 'request' && message?.kind !== 'notification') return NOTHING
  const { method, params } = message
  const { name, _meta: meta } = params
  const traceparent = isObject(meta) ? meta['traceparent'] : undefined
  return {
    attributes: attributesOf(method, name),
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
  }
}

const NOTHING: BodySaid = { attributes: {}, traceparent: undefined }

/** The attributes whose texts hold nothing of a secret of the request: a client may write anything for a name. */
export function withoutSecrets(attributes: Attributes, secrets: Pick<SecretMask, 'maskIn'>): Attributes {
  const masked = Object.entries(attributes).map(([name, value]) => [
    name,
    typeof value === 'string' ? secrets.maskIn(value) : value,
  ])
  return Object.fromEntries(masked) as Attributes
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
