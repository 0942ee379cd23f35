import { Failure } from '../core/index.ts'

/** Letters, digits, `-`, `_`, `~` and single slashes: unambiguous. */
const PLAIN = /^(?:\/[A-Za-z0-9\-_~]*)+$/

/** Visible US-ASCII without `#` and `\`: the valid characters of a request target (RFC 3986 §3.3, RFC 9112 §3.2). */
const VISIBLE = /^[\x21\x22\x24-\x5b\x5d-\x7e]*$/

/** Maximum decodings of a path when looking for hidden characters. */
const DECODINGS = 4

/**
 * Rejects an ambiguous raw path (decisions §2.8): without a leading slash, raw or encoded backslashes, encoded
 * slashes and NULs, `%25` hiding one of them, dot segments in any spelling (`.`, `%2e`, `..;x`), fragments,
 * incomplete percent-encodings, bytes outside visible ASCII. Throws `bad_request`.
 */
export function checkPath(rawPath: string): void {
  if (PLAIN.test(rawPath)) return
  if (rawPath.charCodeAt(0) !== 0x2f) throw refused('the path does not start with a slash')
  if (!VISIBLE.test(rawPath)) throw refused('the path has a fragment, a backslash or a byte outside visible ASCII')
  checkDotSegments(rawPath)
  if (rawPath.includes('%')) checkEncoded(rawPath)
}

/** Rejects a raw query with a fragment sign or bytes outside visible ASCII. Throws `bad_request`. */
export function checkQuery(rawQuery: string): void {
  if (rawQuery !== '' && !/^[\x21\x22\x24-\x7e]*$/.test(rawQuery))
    throw refused('the query has a fragment or a byte outside visible ASCII')
}

/**
 * A checked path as the most lenient servers read it: percent-encodings decoded, path parameters after semicolons
 * removed, consecutive slashes merged. Only for comparison; the path is forwarded exactly as received.
 */
export function readAsBackends(path: string): string {
  let read = path
  for (let round = 0; round < DECODINGS && read.includes('%'); round++) read = decodeOnce(read)
  return read.replace(/;[^/]*/g, '').replace(/\/{2,}/g, '/')
}

function checkEncoded(rawPath: string): void {
  if (/%(?![0-9A-Fa-f]{2})/.test(rawPath)) throw refused('a percent sign is not followed by two hex digits')
  const slashes = count(rawPath)
  let decoded = rawPath
  for (let round = 0; decoded.includes('%'); round++) {
    if (round === DECODINGS) throw refused('percent signs are encoded too often')
    const next = decodeOnce(decoded)
    if (next === decoded) return
    decoded = next
    if (count(decoded) !== slashes) throw refused('the path has an encoded slash')
    if (decoded.includes('\\')) throw refused('the path has an encoded backslash')
    if (decoded.includes('\0')) throw refused('the path has an encoded NUL')
    checkDotSegments(decoded)
  }
}

function checkDotSegments(path: string): void {
  for (const segment of path.split('/')) {
    // Some servers treat text after a semicolon as parameters, so `..;x` is a dot segment to them.
    const parameters = segment.indexOf(';')
    const name = parameters === -1 ? segment : segment.slice(0, parameters)
    if (name === '.' || name === '..') throw refused('the path has a dot segment')
  }
}

/** Bytes are decoded as Latin-1 characters: only ASCII matters here, and UTF-8 may be invalid. */
const decodeOnce = (path: string): string =>
  path.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

const count = (path: string): number => path.split('/').length

const refused = (detail: string): Failure => new Failure('bad_request', { detail })
