import type { LocalHandler } from '../core/index.ts'

/**
 * Whether a path is under `/.well-known`, in any spelling that a backend could accept; never forwarded (decisions
 * §2.7).
 */
export function isWellKnown(path: string): boolean {
  // Fast path: a letter after the slash and nothing encoded.
  const second = path.charCodeAt(1)
  if (second !== 0x2e && second !== 0x2f && second !== 0x25) return false
  let decoded = path
  for (let round = 0; round < 4 && decoded.includes('%'); round++) decoded = decodeOnce(decoded)
  return /^\/+\.well-known(?:\/|;|$)/i.test(decoded)
}

const decodeOnce = (text: string): string =>
  text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** Serves a discovery document at `address` (path, with `?query` where it belongs to it), to every origin. */
export function documentHandler(address: string, document: object): LocalHandler {
  const mark = address.indexOf('?')
  const body = Buffer.from(JSON.stringify(document))
  const headers = {
    'cache-control': 'max-age=300',
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
  }
  return {
    path: mark === -1 ? address : address.slice(0, mark),
    ...(mark === -1 ? {} : { exactQuery: address.slice(mark + 1) }),
    methods: ['GET'],
    bodyLimitBytes: 0,
    cors: 'any_origin',
    handle: () => ({ status: 200, headers, body }),
  }
}
