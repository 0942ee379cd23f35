/** Removes all lines of these headers (lower-case names) from a flat list of names and values. */
export function removeHeaders(headers: string[], names: ReadonlySet<string>): void {
  for (let at = headers.length - 2; at >= 0; at -= 2)
    if (names.has(headers[at]?.toLowerCase() ?? '')) headers.splice(at, 2)
}

/** The values of all lines with this name (lower case) in a flat list of names and values, in order. */
export function headerLines(headers: readonly string[], name: string): readonly string[] {
  const lines: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const own = headers[at]
    if (own?.length === name.length && own.toLowerCase() === name) lines.push(headers[at + 1] ?? '')
  }
  return lines
}
