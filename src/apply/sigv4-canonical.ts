/** The canonical request of SigV4: small pure functions, each step as "Create a signed AWS API request" names it. */

/** Header names in the signature, sorted and joined by `;`, and their lines. */
export interface CanonicalHeaders {
  readonly names: string
  /** `name:value\n` per name. */
  readonly lines: string
}

/** A path that is its own canonical form: no escapes, no empty segments, no dots at the start of a segment. */
const PLAIN_PATH = /^\/(?:[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*\/)*(?:[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*)?$/

/**
 * The path as sent, without empty and dot segments, and with each segment encoded once more (`%2F` → `%252F`): AWS does so
 * for every service but S3.
 */
export function canonicalPath(path: string): string {
  if (PLAIN_PATH.test(path)) return path
  const segments: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(encodeText(segment))
  }
  return `/${segments.join('/')}${segments.length > 0 && path.endsWith('/') ? '/' : ''}`
}

/** The path as S3 signs it: as it is, each character encoded once, nothing taken away. */
export const canonicalPathOfS3 = (path: string): string =>
  PLAIN_PATH.test(path) ? path : path.split('/').map(normalise).join('/')

/**
 * The target as sent to S3: path and query exactly as signed, so that a verifier reads what was signed, however it
 * decodes.
 */
export function targetOfS3(target: string): string {
  const queryAt = target.indexOf('?')
  if (queryAt < 0) return canonicalPathOfS3(target)
  const query = target
    .slice(queryAt + 1)
    .split('&')
    .map((piece) => piece.split('=', 1).concat(piece.includes('=') ? piece.slice(piece.indexOf('=') + 1) : []))
  return `${canonicalPathOfS3(target.slice(0, queryAt))}?${query.map((pair) => pair.map(normalise).join('=')).join('&')}`
}

/**
 * The canonical query: each name and value decoded (percent escapes only: `+` is a plus, RFC 3986 §2.2) and
 * re-encoded, sorted by name, then by value. A name without `=` has the empty value; empty parts between `&` are
 * ignored.
 */
export function canonicalQuery(query: string): string {
  if (query === '') return ''
  const pairs: (readonly [name: string, value: string])[] = []
  for (const piece of query.split('&')) {
    if (piece === '') continue
    const at = piece.indexOf('=')
    pairs.push(at < 0 ? [normalise(piece), ''] : [normalise(piece.slice(0, at)), normalise(piece.slice(at + 1))])
  }
  pairs.sort((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]))
  return pairs.map(([name, value]) => `${name}=${value}`).join('&')
}

/**
 * The headers that are signed (decisions §3.5): what a hop on the way may not change, and nothing that one may. Values of
 * repeated names are joined by `,`, outer spaces go and inner runs of them become one.
 * @param headers flat list (name, value, …), names in any case
 */
export function canonicalHeaders(headers: readonly string[]): CanonicalHeaders {
  const signed: (readonly [name: string, value: string])[] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index]?.toLowerCase() ?? ''
    if (isSigned(name)) signed.push([name, squeeze(headers[index + 1] ?? '')])
  }
  // A stable sort: the values of a repeated name stay in the order in which they are sent.
  signed.sort((a, b) => compare(a[0], b[0]))
  let names = ''
  let lines = ''
  let last: string | undefined
  for (const [name, value] of signed) {
    if (name === last) lines += `,${value}`
    else {
      names += last === undefined ? name : `;${name}`
      lines += last === undefined ? `${name}:${value}` : `\n${name}:${value}`
      last = name
    }
  }
  return { names, lines: `${lines}\n` }
}

/** Whether a header (lower-case name) is part of the signature. */
export function isSigned(name: string): boolean {
  return name === 'host' || name === 'content-type' || name.startsWith('x-amz-') || name.startsWith('mcp-')
}

/** Tabs count as spaces, as in AWS's own SDKs; other bytes that Unicode calls spaces do not. */
function squeeze(value: string): string {
  if (!NEEDS_SQUEEZING.test(value)) return value
  return value.replace(/[ \t]+/g, ' ').replace(/^ | $/g, '')
}

const NEEDS_SQUEEZING = /\t| {2}|^ | $/

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const UNRESERVED = /^[A-Za-z0-9\-._~]*$/

function normalise(text: string): string {
  return UNRESERVED.test(text) ? text : encodeBytes(decodeBytes(text))
}

function encodeText(text: string): string {
  return UNRESERVED.test(text) ? text : encodeBytes(bytesOf(text))
}

/** The bytes on the wire: Node passes request targets unchanged as latin1; everything else is UTF-8. */
function bytesOf(text: string): Buffer {
  // oxlint-disable-next-line no-control-regex -- every byte value, on purpose
  return Buffer.from(text, /^[\0-\u00ff]*$/.test(text) ? 'latin1' : 'utf8')
}

function decodeBytes(text: string): Buffer {
  const raw = bytesOf(text)
  const bytes = Buffer.allocUnsafe(raw.length)
  let length = 0
  for (let index = 0; index < raw.length; index++) {
    const escaped = raw[index] === 0x25 ? raw.toString('latin1', index + 1, index + 3) : ''
    const isEscape = /^[0-9A-Fa-f]{2}$/.test(escaped)
    bytes[length++] = isEscape ? Number.parseInt(escaped, 16) : (raw[index] ?? 0)
    if (isEscape) index += 2
  }
  return bytes.subarray(0, length)
}

function encodeBytes(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) {
    const character = String.fromCharCode(byte)
    text += UNRESERVED.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return text
}
