/** A path under `/.well-known`, in any spelling that a backend could take for it; never forwarded (decisions §2.7). */
export function isWellKnown(path: string): boolean {
  // Nearly every path is plain: a letter after the slash and nothing encoded.
  const second = path.charCodeAt(1)
  if (second !== 0x2e && second !== 0x2f && second !== 0x25) return false
  let decoded = path
  for (let round = 0; round < 4 && decoded.includes('%'); round++) decoded = decodeOnce(decoded)
  return /^\/+\.well-known(?:\/|;|$)/i.test(decoded)
}

const decodeOnce = (text: string): string =>
  text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** The documents of a runtime, ready to send, by path and query. */
export function renderDocuments(documents: ReadonlyMap<string, object>): ReadonlyMap<string, Buffer> {
  return new Map([...documents].map(([path, document]) => [path, Buffer.from(JSON.stringify(document))]))
}
