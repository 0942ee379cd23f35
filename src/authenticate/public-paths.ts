/**
 * Whether `path` (raw, checked, without query) is open by configuration: equal to an entry, or below it at a segment
 * boundary (decisions §2.1). Bytes are compared, so another spelling of a public path is simply not public; `/` and
 * entries without a leading slash match nothing.
 */
export function isPublicPath(publicPaths: readonly string[], path: string): boolean {
  return publicPaths.some((entry) => {
    if (!entry.startsWith('/') || /^\/+$/.test(entry)) return false
    return path === entry || path.startsWith(entry.endsWith('/') ? entry : `${entry}/`)
  })
}
