import { MASK, maskLooks } from '../core/index.ts'

/**
 * The masking policy at capture, the same as for logs: tokens, credentials, cookies, secrets. A value is masked by its name,
 * by its format, or because it is a known secret of this request.
 */

const SHOWN_OF_SESSION = 6

/** Parts of a signature that are not secret, and needed to compare it with a service's error. */
export const isShownOfSignature = (name: string): boolean => name === 'x-amz-date' || name === 'x-amz-content-sha256'

/** The beginning of a session's id. */
export const maskedSession = (id: string): string =>
  id.length <= 2 * SHOWN_OF_SESSION ? MASK : `${id.slice(0, SHOWN_OF_SESSION)}…${MASK}`

const SECRET_PARAMETER =
  /token|secret|passw|key|code|sig|credential|auth|session|state|nonce|assertion|jwt|verifier|challenge|ticket|cookie/i
/** Long, with letters and digits of a token's alphabet: masked under any name. */
const TOKEN_LIKE = /^(?=.*\d)(?=.*[A-Za-z])[\w\-.~+/=]{24,}$/

/** A raw query with secret values masked, by parameter name or format; `onSecret` receives each. */
export function maskQuery(query: string, onSecret?: (value: string) => void): string {
  if (query === '') return query
  return query
    .split('&')
    .map((pair) => {
      const at = pair.indexOf('=')
      const value = at === -1 ? pair : pair.slice(at + 1)
      if (value === '') return pair
      const name = at === -1 ? '' : pair.slice(0, at)
      const isSecret = TOKEN_LIKE.test(decoded(value)) || (at !== -1 && SECRET_PARAMETER.test(decoded(name)))
      if (!isSecret) return pair
      onSecret?.(value)
      return at === -1 ? MASK : `${name}=${MASK}`
    })
    .join('&')
}

/** A request target or an address with its query masked, and token-like parts of its path. */
export function maskTarget(target: string): string {
  const at = target.indexOf('?')
  if (at === -1) return maskLooks(target)
  return `${maskLooks(target.slice(0, at))}?${maskLooks(maskQuery(target.slice(at + 1)))}`
}

/** Names are ASCII, so bytes can be percent-decoded separately. */
const decoded = (text: string): string =>
  text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
