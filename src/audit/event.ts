import { randomUUID } from 'node:crypto'
import type { AuditEventType, AuditNotice, AuditOutcome, Claims, ClaimValue, CredentialConfig } from '../core/index.ts'

/** The credential that was sent to the backend. */
export interface CredentialRecord extends CredentialConfig {
  readonly role?: string
  readonly source: 'cache' | 'fetched' | 'static'
  readonly fetchedAt?: string
  readonly expiresAt?: string
  readonly fingerprint?: string
}

export interface DecisionRecord {
  readonly rule?: string
  readonly mapping?: string
  readonly allowed: boolean
}

/** One audit event, independent of its format. */
export interface AuditEvent {
  readonly type: AuditEventType
  readonly atMs: number
  readonly outcome: AuditOutcome
  /** Address of the client; undefined for events of the proxy itself. */
  readonly client: string | undefined
  /** Claims of a verified token. */
  readonly claims?: Claims | undefined
  readonly userId?: string | undefined
  readonly clientId?: string | undefined
  /** The route, the authorization server, or `proxy`. */
  readonly component: string
  readonly target: Readonly<Record<string, string>>
  readonly credential?: CredentialRecord | undefined
  readonly decision?: DecisionRecord | undefined
  readonly arguments?: unknown
  /** Other fields: request id, status, reason, duration. */
  readonly extra: Readonly<Record<string, unknown>>
}

export type RenderEvent = (event: AuditEvent) => string

export interface RenderOptions {
  readonly format: 'toolhive' | 'ocsf'
  readonly version: string
}

/** Maximum length of texts from tokens and clients, in characters. */
const MAX_TEXT = 256
const MAX_DELEGATION = 8

/** Renders events as lines of a format, each with its newline. */
export const createRenderer = ({ format, version }: RenderOptions): RenderEvent =>
  format === 'ocsf' ? (event) => ocsfLine(event, version) : toolhiveLine

export function eventOfNotice(notice: AuditNotice, atMs: number): AuditEvent {
  const { type, outcome, component, client, requestId, userId, clientId, target, details } = notice
  return {
    type,
    outcome,
    atMs,
    client,
    component,
    userId: userId?.slice(0, MAX_TEXT),
    clientId: clientId?.slice(0, MAX_TEXT),
    target: target ?? {},
    extra: { requestId, ...details },
  }
}

/** JSON of what many events share. */
const shared = new WeakMap<object, string>()

function sharedJson(value: object, make: () => unknown = () => value): string {
  let json = shared.get(value)
  if (json === undefined) shared.set(value, (json = JSON.stringify(make())))
  return json
}

function toolhiveLine(event: AuditEvent): string {
  const { type, atMs, outcome, client, component, claims, target, credential, decision, extra } = event
  const subjects =
    claims === undefined ? JSON.stringify(subjectsOf(event)) : sharedJson(claims, () => subjectsOf(event))
  const chain = claims?.['act'] === undefined ? [] : delegationOf(claims)
  const source = client === undefined ? LOCAL : `{"type":"network","value":${JSON.stringify(client)}}`
  return (
    `{"metadata":{"auditId":"${randomUUID()}","extra":${JSON.stringify(extra)}},"type":"${type}"` +
    `,"loggedAt":"${new Date(atMs).toISOString()}","source":${source},"outcome":"${outcome}","subjects":${subjects}` +
    (chain.length === 0 ? '' : `,"delegation":${JSON.stringify({ chain })}`) +
    `,"component":${JSON.stringify(component)},"target":${JSON.stringify(target)}` +
    (credential === undefined ? '' : `,"credential":${sharedJson(credential)}`) +
    (decision === undefined ? '' : `,"decision":${JSON.stringify(decision)}`) +
    (event.arguments === undefined ? '' : `,"data":${JSON.stringify({ arguments: event.arguments })}`) +
    '}\n'
  )
}

const LOCAL = '{"type":"local","value":""}'

const text = (value: ClaimValue | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, MAX_TEXT) : undefined

/** ToolHive's names. The user's name falls back to the subject. */
function subjectsOf({ claims, userId, clientId }: AuditEvent): Record<string, string | undefined> {
  const id = userId ?? text(claims?.['sub'])
  return {
    user: text(claims?.['name']) ?? text(claims?.['preferred_username']) ?? text(claims?.['email']) ?? id,
    user_id: id,
    client_name: clientId ?? text(claims?.['client_name']) ?? text(claims?.['client_id']) ?? text(claims?.['azp']),
    client_version: text(claims?.['client_version']),
  }
}

/** Actors of the token, outermost first (RFC 8693 §4.1). */
function delegationOf(claims: Claims | undefined): readonly string[] {
  const chain: string[] = []
  let actor = claims?.['act']
  while (chain.length < MAX_DELEGATION && isObject(actor)) {
    chain.push(text(actor['sub']) ?? text(actor['client_id']) ?? '')
    actor = actor['act']
  }
  return chain
}

const isObject = (value: ClaimValue | undefined): value is Readonly<Record<string, ClaimValue>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** OCSF activities: API Activity (6003) and Authentication (3002). */
const READS: ReadonlySet<AuditEventType> = new Set([
  'mcp_tools_list',
  'mcp_resource_read',
  'mcp_resources_list',
  'mcp_prompt_get',
  'mcp_prompts_list',
])
const LOGIN_ACTIVITIES: Partial<Record<AuditEventType, number>> = { login: 1, session_revoked: 2 }
/** Create, update and delete. */
const CHANGES: Partial<Record<AuditEventType, number>> = {
  account_connected: 1,
  account_replaced: 3,
  account_disconnected: 4,
}
const OTHER = 99

function ocsfLine(event: AuditEvent, version: string): string {
  const { type, atMs, outcome, client, component, target, credential, decision, extra } = event
  const { user, user_id: uid, client_name: clientName, client_version: clientVersion } = subjectsOf(event)
  const login = LOGIN_ACTIVITIES[type]
  const classUid = login === undefined ? 6003 : 3002
  const activity = login ?? CHANGES[type] ?? (READS.has(type) ? 2 : OTHER)
  const isSuccess = outcome === 'success'
  const chain = delegationOf(event.claims)
  const who = { name: user ?? 'anonymous', uid }
  const app = clientName === undefined ? undefined : { name: clientName, version: clientVersion }
  const { requestId, status, reason, durationMs, ...rest } = extra
  const line = {
    metadata: {
      version: '1.6.0',
      uid: randomUUID(),
      product: { name: 'mcp-extauth', vendor_name: 'mcp-extauth', version },
      log_name: 'audit',
    },
    time: atMs,
    class_uid: classUid,
    category_uid: classUid === 3002 ? 3 : 6,
    activity_id: activity,
    ...(activity === OTHER ? { activity_name: type } : {}),
    type_uid: classUid * 100 + activity,
    severity_id: isSuccess ? 1 : outcome === 'denied' ? 2 : 3,
    status_id: isSuccess ? 1 : 2,
    status_code: typeof status === 'number' ? String(status) : undefined,
    status_detail: reason,
    duration: durationMs,
    src_endpoint: client === undefined ? { name: 'local' } : { ip: client },
    ...(login === undefined
      ? {
          actor: { user: who, app_name: clientName },
          api: { operation: target['method'] ?? type, request: { uid: requestId ?? '' }, service: { name: component } },
          resources: resourcesOf(target),
        }
      : { user: who, service: { name: component }, actor: app === undefined ? undefined : { app_name: app.name } }),
    unmapped: {
      event: type,
      outcome,
      target,
      delegation: chain.length === 0 ? undefined : { chain },
      credential,
      decision,
      arguments: event.arguments,
      client_version: clientVersion,
      ...rest,
    },
  }
  return `${JSON.stringify(line)}\n`
}

function resourcesOf(target: AuditEvent['target']): object[] | undefined {
  const name = target['name'] ?? target['uri']
  return name === undefined ? undefined : [{ name, type: target['type'] }]
}
