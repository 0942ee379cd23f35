/** Removes all lines of these headers (lower-case names) from a flat list of names and values. */
export function removeHeaders(headers: string[], names: ReadonlySet<string>): void {
  for (let at = headers.length - 2; at >= 0; at -= 2)
    if (names.has(headers[at]?.toLowerCase() ?? '')) headers.splice(at, 2)
}
