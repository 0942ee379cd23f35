/** Names that introduce a token of clients without headers; the token is the rest of the entry, or the next one. */
const MARKER = /bearer|authorization|access[-_.]?token|id[-_.]?token|api[-_.]?key|jwt/i
/** Three base64url parts, the first of which begins like a JSON object. */
const JWT = /(?:^|[.=,\s])eyJ[\w-]+\.[\w-]+\.[\w-]*/

/**
 * Removes entries with a token from a `Sec-WebSocket-Protocol` value (RFC 6455 §11.3.4), such as Kubernetes'
 * `base64url.bearer.authorization.k8s.io.…` or `access_token, …`. Empty if nothing is left; the same value without
 * such entries.
 */
export function withoutTokens(value: string): string {
  if (!MARKER.test(value) && !JWT.test(value)) return value
  const entries = value.split(',').map((entry) => entry.trim())
  const carries = entries.map((entry) => MARKER.test(entry) || JWT.test(entry))
  // A bare marker describes the next entry.
  return entries.filter((entry, at) => entry !== '' && !carries[at] && !isBareMarker(entries[at - 1])).join(', ')
}

const isBareMarker = (entry: string | undefined): boolean =>
  entry !== undefined && MARKER.exec(entry)?.[0].length === entry.length
