import { createHmac, timingSafeEqual } from 'node:crypto'
import { Failure, type Caller, type Known, type Secret } from '../core/index.ts'
import { sessionIdAt } from '../mcp/index.ts'

/** The last session id that a caller presented, and its meaning. */
interface Checked {
  readonly route: string
  readonly visible: string
  readonly backend: string
}

export interface Sessions {
  /**
   * On protected routes: replaces the presented session id by the backend's own, and provides the mapping for
   * responses. Throws `unknown_session` for an id that this caller was not given, and `bad_request` for more than
   * one.
   */
  bind(known: Known): void
}

/**
 * Binds session ids to callers (decisions §7, Sessions): a client sees the backend's id + `.` + HMAC over issuer,
 * caller's identity, route and that id. The id is part of the HMAC, so a suffix cannot be moved to another id.
 */
export function createSessions(key: () => Secret): Sessions {
  const checked = new WeakMap<Caller, Checked>()

  const backendIdOf = (visible: string, caller: Caller, route: string): string => {
    const known = checked.get(caller)
    if (known?.visible === visible && known.route === route) return known.backend
    const dot = visible.lastIndexOf('.')
    const backend = visible.slice(0, Math.max(dot, 0))
    if (dot === -1 || !equals(visible.slice(dot + 1), seal(key(), caller, route, backend)))
      throw new Failure('unknown_session', { detail: 'the session is not one that this caller was given' })
    checked.set(caller, { route, visible, backend })
    return backend
  }

  return {
    bind({ matched, caller }) {
      const { route } = matched
      if (!route.isProtected) return
      matched.sessionToClient = (backend) => `${backend}.${seal(key(), caller, route.name, backend)}`
      const index = sessionIdAt(matched.headers)
      if (index !== -1) matched.headers[index] = backendIdOf(matched.headers[index] ?? '', caller, route.name)
    },
  }
}

function seal(key: Secret, caller: Caller, route: string, backend: string): string {
  return createHmac('sha256', key.key())
    .update(JSON.stringify([...ownerOf(caller), route, backend]))
    .digest('base64url')
}

/** The owner of a session. */
const ownerOf = (caller: Caller): readonly string[] =>
  caller.kind === 'anonymous' ? ['anonymous'] : ['caller', caller.issuer, caller.identity]

function equals(one: string, other: string): boolean {
  const [actual, presented] = [Buffer.from(other), Buffer.from(one)]
  return actual.length === presented.length && timingSafeEqual(actual, presented)
}
