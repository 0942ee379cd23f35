import type { Attributes } from '@opentelemetry/api'
import type { IncomingHttpHeaders } from 'node:http'
import type { SecretMask } from '../core/index.ts'
import { isObject, parseMessage } from '../mcp/index.ts'

/** Maximum size of bodies parsed for the method; larger ones are uploads. */
const MAX_BODY_BYTES = 64 * 1024

const METHOD = /^[\w$./-]{1,64}$/
/** Names of tools and prompts; other values are omitted. */
const NAME = /^[\w.:/ -]{1,128}$/
const VERSION = /^\d{4}-\d\d-\d\d$/

/** Attributes of MCP headers (2026-07-28): method, name and revision, by the semantic conventions for MCP. */
export function attributesOfHeaders(headers: IncomingHttpHeaders): Attributes {
  const version = headers['mcp-protocol-version']
  return {
    ...attributesOf(headers['mcp-method'], headers['mcp-name']),
    ...(typeof version === 'string' && VERSION.test(version) ? { 'mcp.protocol.version': version } : {}),
  }
}

/** Method, name and trace context of a buffered body. */
export interface BodyAttributes {
  readonly attributes: Attributes
  /** `params._meta.traceparent` (MCP's conventions for trace context), not validated. */
  readonly traceparent: string | undefined
}

/** Reads a buffered body, for requests whose headers lack these values (2025-11-25). */
export function attributesOfBody(bytes: Buffer): BodyAttributes {
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

const NOTHING: BodyAttributes = { attributes: {}, traceparent: undefined }

/** Removes attributes that contain a secret of the request: a client may send any name. */
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
