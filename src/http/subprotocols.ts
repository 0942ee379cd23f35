/** Names under which clients without headers hand over a token; the token is the rest of the entry, or the next one. */
const MARKER = /bearer|authorization|access[-_.]?token|id[-_.]?token|api[-_.]?key|jwt/i
/** Three base64url parts of which the first begins like a JSON object. */
const JWT = /(?:^|[.=,\s])eyJ[\w-]+\.[\w-]+\.[\w-]*/

/**
 * A `Sec-WebSocket-Protocol` value (RFC 6455 §11.3.4) without the entries that carry a token, such as Kubernetes'
 * `base64url.bearer.authorization.k8s.io.…` or `access_token, …`. Empty when nothing is left; the very same value when
 * there was no such entry.
 */
export function withoutTokens(value: string): string {
  if (!MARKER.test(value) && !JWT.test(value)) return value
  const entries = value.split(',').map((entry) => entry.trim())
  const carries = entries.map((entry) => MARKER.test(entry) || JWT.test(entry))
  // A marker that is nothing but a name says what the next entry is.
  return entries.filter((entry, at) => entry !== '' && !carries[at] && !isBareMarker(entries[at - 1])).join(', ')
}

const isBareMarker = (entry: string | undefined): boolean =>
  entry !== undefined && MARKER.exec(entry)?.[0].length === entry.length
