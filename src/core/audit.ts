/** Types of audit events about requests. */
export const REQUEST_EVENTS = [
  'mcp_initialize',
  'mcp_tool_call',
  'mcp_tools_list',
  'mcp_resource_read',
  'mcp_resources_list',
  'mcp_prompt_get',
  'mcp_prompts_list',
  'mcp_notification',
  'mcp_ping',
  'mcp_completion',
  'mcp_request',
  'http_request',
] as const

/** Types of audit events about the proxy itself, its authorization servers and connected accounts. */
export const NOTICE_EVENTS = [
  'login',
  'consent',
  'token_issued',
  'token_reused',
  'session_revoked',
  'client_registered',
  'key_rotated',
  'config_reloaded',
  'cache_purged',
  'account_connected',
  'account_replaced',
  'account_disconnected',
  'account_broken',
  'connect_refused',
] as const

export const AUDIT_EVENTS = [...REQUEST_EVENTS, ...NOTICE_EVENTS] as const
export type AuditEventType = (typeof AUDIT_EVENTS)[number]

export type AuditOutcome = 'success' | 'denied' | 'failure' | 'error' | 'application_error'

/** An event that is not one proxied request. It holds no tokens and no secrets. */
export interface AuditNotice {
  readonly type: (typeof NOTICE_EVENTS)[number]
  readonly outcome: AuditOutcome
  /** The authorization server, `connections`, or `proxy`. */
  readonly component: string
  /** Address of the client. */
  readonly client?: string | undefined
  readonly requestId?: string | undefined
  /** A user whom a login verified, or the owner of a connected account. */
  readonly userId?: string | undefined
  /** The OAuth client, authenticated or registered. */
  readonly clientId?: string | undefined
  readonly target?: { readonly type: string; readonly name: string } | undefined
  readonly details?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
}

/** The audit trail, as seen by what reports to it. Without a trail nothing happens. */
export interface AuditSink {
  notice(notice: AuditNotice): void
}

export const NO_AUDIT: AuditSink = { notice: () => undefined }

/** The configuration behind a credential, computed at load. */
export interface CredentialConfig {
  readonly type: string
  /** `namespace/name` of the MCPExternalAuthConfig. */
  readonly config: string
  readonly configHash: string
  readonly audience?: string
  readonly provider?: string
  readonly header?: string
}
