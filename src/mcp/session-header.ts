import { Failure } from '../core/index.ts'

export const SESSION_HEADER = 'mcp-session-id'

/** Index of the session id in a flat list of headers (lower-case names); -1 without one. Throws `bad_request` for several. */
export function sessionIdAt(headers: readonly string[]): number {
  let found = -1
  for (let index = 0; index < headers.length; index += 2) {
    if (headers[index] !== SESSION_HEADER) continue
    if (found !== -1) throw new Failure('bad_request', { detail: 'more than one Mcp-Session-Id header' })
    found = index + 1
  }
  return found
}
