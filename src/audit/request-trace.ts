import { createHmac } from 'node:crypto'
import {
  type Again,
  type Armed,
  type Attempt,
  type AuditEventType,
  type AuditOutcome,
  type Claims,
  type Credential,
  type CredentialConfig,
  type CredentialLookup,
  type Failure,
  type Inbound,
  type Known,
  type Matched,
  MASK,
  maskLooks,
  type McpView,
  type RequestResult,
  type RequestTrace,
  type Secret,
  secretsOfRequest,
  type SecretMask,
} from '../core/index.ts'
import { unavailable, type Written } from './trail-writer.ts'
import type { AuditEvent, CredentialRecord, DecisionRecord } from './event.ts'

/** What the audit trail of a configuration does with events of requests. */
export interface RequestTrail {
  readonly includesArguments: boolean
  readonly fingerprint: Fingerprint
  /** Descriptions of credentials, each made once. */
  readonly described: WeakMap<Credential, DescribedCredential>
  /** The role decision of a request; undefined without role mappings. */
  readonly roleOf: (requestId: string) => RoleRecord | undefined
  readonly now: () => number
  /** Whether events of this type are recorded. */
  records(type: AuditEventType): boolean
  record(event: AuditEvent): void
  /** Where responses wait for their event; undefined where they do not. */
  readonly blocking: { ready(): Promise<void> | undefined; written(event: AuditEvent): Promise<Written> } | undefined
}

/** A credential as it was last used. */
export interface DescribedCredential {
  readonly config: CredentialConfig
  readonly source: CredentialRecord['source']
  readonly role: string | undefined
  readonly credential: CredentialRecord
}

/** The chosen role and the mapping that chose it. */
export interface RoleRecord {
  readonly role: string | undefined
  readonly mapping: string | undefined
}

export type Fingerprint = (credential: Credential) => string | undefined

const FINGERPRINT_DIGITS = 16

/** Keyed hashes of credentials, one computation per credential. */
export function createFingerprint(key: () => Secret): Fingerprint {
  const known = new WeakMap<Credential, string>()
  return (credential) => {
    if (credential.kind === 'none') return undefined
    let found = known.get(credential)
    if (found === undefined) {
      const value =
        credential.kind === 'header'
          ? credential.value.reveal()
          : `${credential.accessKeyId}\n${credential.secretAccessKey.reveal()}`
      found = createHmac('sha256', key().bytes()).update(value).digest('hex').slice(0, FINGERPRINT_DIGITS)
      known.set(credential, found)
    }
    return found
  }
}

/** Characters of a tool name or URI. */
const MAX_NAME = 512
/** Bytes of recorded arguments as JSON. */
const MAX_ARGUMENTS = 1024
/** Shorter names cannot contain a token. */
const MIN_SECRET = 12
/** Bytes of a JSON response in which an error is looked for. */
const MAX_INSPECTED = 16 * 1024

const TYPES: Readonly<Record<string, AuditEventType>> = {
  initialize: 'mcp_initialize',
  'tools/call': 'mcp_tool_call',
  'tools/list': 'mcp_tools_list',
  'resources/read': 'mcp_resource_read',
  'resources/list': 'mcp_resources_list',
  'prompts/get': 'mcp_prompt_get',
  'prompts/list': 'mcp_prompts_list',
  ping: 'mcp_ping',
  'completion/complete': 'mcp_completion',
}

/** The event type of a request; `http_request` where no message was read. */
export function eventTypeOf(view: McpView | undefined): AuditEventType {
  if (view === undefined || view.method === '') return 'http_request'
  if (view.method.startsWith('notifications/')) return 'mcp_notification'
  return Object.hasOwn(TYPES, view.method) ? (TYPES[view.method] ?? 'mcp_request') : 'mcp_request'
}

/** Failures of the caller: its token, its rights. */
const isDenied = (status: number): boolean => status === 401 || status === 403

/** Builds the event of one request. */
export class AuditTrace implements RequestTrace {
  readonly #trail: RequestTrail
  readonly #inbound: Inbound & { readonly localHandler?: { readonly path: string } | undefined }
  #matched: Matched | undefined
  #known: Known | undefined
  #lookup: CredentialLookup | undefined
  #credential: CredentialRecord | undefined
  #role: RoleRecord | undefined
  #attempts = 0
  #backendStatus: number | undefined
  #isRecorded = false
  /** The beginning of a small JSON response. */
  #chunks: Buffer[] | undefined
  #chunkBytes = 0
  readonly admit?: () => Promise<void> | undefined
  readonly beforeResponse?: (status: number, failure?: Failure) => Promise<void> | undefined

  constructor(trail: RequestTrail, inbound: Inbound) {
    this.#trail = trail
    this.#inbound = inbound
    const { blocking } = trail
    if (blocking === undefined) return
    this.admit = () => (trail.records(this.#type) ? blocking.ready() : undefined)
    this.beforeResponse = (status, failure) => {
      if (this.#isRecorded || !trail.records(this.#type)) return undefined
      this.#isRecorded = true
      const event = this.#event(status, failure?.code ?? '', undefined)
      // Its own event must not wait for what failed.
      if (failure?.code === 'audit_unavailable') {
        trail.record(event)
        return undefined
      }
      return blocking.written(event).then((written) => {
        if (written === 'written') return
        // Its place is free for the event of the failure, unless it may still be written.
        if (written === 'refused') this.#isRecorded = false
        throw unavailable()
      })
    }
  }

  dropped(): void {}
  sealed(): void {}
  sending(): void {}
  responded(): void {}

  matched(matched: Matched): void {
    this.#matched = matched
  }

  known(known: Known): void {
    this.#known = known
  }

  attempt({ number }: Attempt, lookup: CredentialLookup): void {
    this.#attempts = number
    this.#lookup = lookup
  }

  armed(armed: Armed): void {
    const { credential, config } = armed
    this.#role = this.#trail.roleOf(this.#inbound.id)
    const from = this.#lookup?.from
    const source = from === 'config' ? 'static' : from === 'cache' ? 'cache' : 'fetched'
    const { described } = this.#trail
    let record = described.get(credential)
    if (record?.config !== config || record.source !== source || record.role !== this.#role?.role) {
      record = { config, source, role: this.#role?.role, credential: this.#describe(armed, source) }
      described.set(credential, record)
    }
    this.#credential = record.credential
  }

  #describe({ known, credential, config }: Armed, source: CredentialRecord['source']): CredentialRecord {
    const found = source === 'static' ? this.#lookup : known.matched.route.obtain.lookup(known)
    const cached = found?.from === 'cache' ? found : undefined
    const fingerprint = this.#trail.fingerprint(credential)
    return {
      ...config,
      ...(this.#role?.role === undefined ? {} : { role: this.#role.role }),
      source,
      ...(cached === undefined
        ? {}
        : {
            fetchedAt: iso(cached.obtainedAtMs),
            ...(Number.isFinite(cached.endMs) ? { expiresAt: iso(cached.endMs) } : {}),
          }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
    }
  }

  received(status: number, headers: Readonly<Record<string, string | readonly string[] | undefined>>): void {
    this.#backendStatus = status
    const { 'content-type': type, 'content-encoding': coding, 'content-length': length } = headers
    const isSmall = length === undefined || Number(length) <= MAX_INSPECTED
    const isRead = this.#trail.blocking === undefined && this.#matched?.view?.id !== undefined
    this.#chunkBytes = 0
    this.#chunks =
      isRead && isSmall && status === 200 && coding === undefined && typeof type === 'string' && JSON_TYPE.test(type)
        ? []
        : undefined
  }

  again(_again: Again): void {
    this.#chunks = undefined
  }

  body(chunk: Buffer): void {
    if (this.#chunks === undefined) return
    this.#chunkBytes += chunk.length
    if (this.#chunkBytes > MAX_INSPECTED) this.#chunks = undefined
    else this.#chunks.push(chunk)
  }

  finished({ status, reason }: RequestResult): void {
    if (this.#isRecorded || !this.#trail.records(this.#type)) return
    this.#isRecorded = true
    this.#trail.record(this.#event(status, reason, this.#chunks))
  }

  get #type(): AuditEventType {
    return eventTypeOf(this.#matched?.view?.mcp)
  }

  #event(status: number, reason: string, chunks: readonly Buffer[] | undefined): AuditEvent {
    const { id, peer, receivedAtMs, method } = this.#inbound
    const view = this.#matched?.view
    const route = this.#matched?.route
    const caller = this.#known?.caller
    const nowMs = this.#trail.now()
    return {
      type: this.#type,
      atMs: nowMs,
      outcome: outcomeOf(status, reason, chunks),
      client: peer,
      claims: caller?.kind === 'authenticated' ? caller.claims : undefined,
      component: route?.name ?? 'proxy',
      target: this.#target(view?.mcp),
      credential: this.#credential,
      decision: this.#decision(reason),
      arguments: this.#trail.includesArguments ? this.#arguments(view?.mcp) : undefined,
      extra: {
        requestId: id,
        httpMethod: method,
        status,
        backendStatus: this.#backendStatus,
        reason: reason === '' ? undefined : reason,
        durationMs: Math.round(nowMs - receivedAtMs),
        attempts: this.#attempts > 1 ? this.#attempts : undefined,
        issuer: caller?.kind === 'authenticated' ? caller.issuer : undefined,
      },
    }
  }

  #decision(reason: string): DecisionRecord | undefined {
    const rules = this.#matched?.decision
    const role = this.#role ?? this.#trail.roleOf(this.#inbound.id)
    if (rules === undefined && role === undefined) return undefined
    return {
      ...(rules?.rule === undefined ? {} : { rule: rules.rule }),
      ...(role?.mapping === undefined ? {} : { mapping: role.mapping }),
      allowed: rules?.allowed !== false && (role === undefined || role.role !== undefined) && !DENIALS.has(reason),
    }
  }

  #target(mcp: McpView | undefined): Record<string, string> {
    const endpoint = this.#matched?.route.path ?? this.#inbound.localHandler?.path
    const target: Record<string, string> = { type: mcp === undefined ? 'endpoint' : mcp.kind }
    if (endpoint !== undefined) target['endpoint'] = endpoint
    if (mcp === undefined || mcp.method === '') return { ...target, type: 'endpoint' }
    target['method'] = this.#clean(mcp.method)
    if (mcp.name !== '') target['name'] = this.#clean(mcp.name)
    if (mcp.uri !== '') target['uri'] = this.#clean(mcp.uri)
    return target
  }

  #secrets: SecretMask | undefined

  /** A text of the client without the secrets of its request. */
  #clean(text: string): string {
    const cut = text.slice(0, MAX_NAME)
    if (cut.length < MIN_SECRET) return cut
    this.#secrets ??= secretsOfRequest(this.#inbound.request.rawHeaders)
    return maskLooks(this.#secrets.maskIn(cut))
  }

  #arguments(mcp: McpView | undefined): unknown {
    if (mcp === undefined || (mcp.kind !== 'tool' && mcp.kind !== 'prompt')) return undefined
    this.#secrets ??= secretsOfRequest(this.#inbound.request.rawHeaders)
    return maskedArguments(mcp.args, this.#secrets)
  }
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i
const iso = (ms: number): string => new Date(ms).toISOString()
const DENIALS: ReadonlySet<string> = new Set([
  'not_allowed',
  'insufficient_scope',
  'no_role',
  'role_denied',
  'rule_limit',
])

function outcomeOf(status: number, reason: string, chunks: readonly Buffer[] | undefined): AuditOutcome {
  if (isDenied(status)) return 'denied'
  if (status >= 500 || reason === 'aborted') return 'error'
  if (status >= 400) return 'failure'
  return chunks !== undefined && holdsError(chunks) ? 'application_error' : 'success'
}

/** Whether a JSON-RPC response is an error, or a result of a tool with `isError`. */
function holdsError(chunks: readonly Buffer[]): boolean {
  const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
  // Most responses have neither word.
  if (body === undefined || (!body.includes('"error"') && !body.includes('"isError"'))) return false
  try {
    const message = JSON.parse(body.toString('utf8')) as { error?: unknown; result?: { isError?: unknown } } | null
    return (message?.error ?? undefined) !== undefined || message?.result?.isError === true
  } catch {
    return false
  }
}

/** Names of fields whose values are masked, wherever they are. */
const SECRET_NAME =
  /token|secret|passw|passphrase|pwd|credential|authorization|cookie|(?:api|private|access|signing).?key|assertion|verifier|jwt|^auth$|^pin$|^otp$/i

/** Arguments up to 1 KiB as JSON; larger ones are described by their size. */
export function maskedArguments(args: Claims, secrets: Pick<SecretMask, 'maskIn'>): unknown {
  const json = JSON.stringify(args, (name, value: unknown) => {
    if (name !== '' && SECRET_NAME.test(name)) return MASK
    return typeof value === 'string' ? maskLooks(secrets.maskIn(value)) : value
  })
  const bytes = Buffer.byteLength(json)
  return bytes > MAX_ARGUMENTS
    ? { omitted: `${bytes} bytes, more than ${MAX_ARGUMENTS}` }
    : (JSON.parse(json) as unknown)
}
