const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/g

/** True when any object in a valid JSON text has a name twice: readers disagree on which one counts. */
function hasDuplicateNames(text: string): boolean {
  // One entry per open object (its names so far) or array (undefined).
  const open: (Set<unknown> | undefined)[] = []
  let previous = ''
  for (const [token] of text.matchAll(TOKEN)) {
    const names = open.at(-1)
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (token.startsWith('"') && names !== undefined && previous !== ':') {
      const name: unknown = JSON.parse(token)
      if (names.has(name)) return true
      names.add(name)
    }
    previous = token
  }
  return false
}

/**
 * The members of a JSON object, or undefined for anything else: not UTF-8, not JSON, not an object, or a name that
 * occurs twice at any depth. Members are looked up in a map, so that none is inherited.
 */
export function parseStrictObject(body: Buffer): ReadonlyMap<string, unknown> | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value) || hasDuplicateNames(text)) return undefined
    return new Map<string, unknown>(Object.entries(value))
  } catch {
    return undefined
  }
}
