import { randomBytes } from 'node:crypto'

/** What a session id tells about its client; replicas need no shared memory for it. */
export interface MarkedSession {
  /** The backend's id; undefined for a session of the placeholder server. */
  readonly backendId: string | undefined
  readonly mark: SessionMark
}

/** Whether the client declared `elicitation: {url: {}}` at `initialize`; empty for ids from before connections were used. */
export type SessionMark = typeof OPENS_URLS | typeof TEXT_ONLY | ''

const PLACEHOLDER = 'extauth-connect-'
export const OPENS_URLS = '~u'
export const TEXT_ONLY = '~t'

/** A new session id of the placeholder server. */
export const placeholderSession = (mark: SessionMark): string =>
  PLACEHOLDER + randomBytes(12).toString('base64url') + mark

/** Splits an id and its mark. */
export function readSession(id: string): MarkedSession {
  const mark = id.endsWith(OPENS_URLS) ? OPENS_URLS : id.endsWith(TEXT_ONLY) ? TEXT_ONLY : ''
  const backendId = id.slice(0, id.length - mark.length)
  return { backendId: backendId.startsWith(PLACEHOLDER) ? undefined : backendId, mark }
}
