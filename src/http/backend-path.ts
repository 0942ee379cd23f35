/** How the paths of a route and of its target belong together. */
export interface PathMapping {
  /** Path prefix of the route; `/` matches all. */
  readonly path: string
  /** Exactly the target's path is sent, whatever follows the prefix. */
  readonly exactTarget: boolean
  /** Its raw path, never empty. */
  readonly target: { readonly path: string }
}

/**
 * The backend's path for a request path that lies under the route: the target's path, then what follows the prefix, byte
 * for byte (decisions §7, Path). Where both have a slash at the seam there is one.
 */
export function backendPathOf(mapping: PathMapping, path: string): string {
  const { path: targetPath } = mapping.target
  if (mapping.exactTarget) return targetPath
  const rest = mapping.path === '/' ? (path === '/' ? '' : path) : path.slice(withoutSlash(mapping.path).length)
  return rest.startsWith('/') ? withoutSlash(targetPath) + rest : targetPath + rest
}

/** Whether `path` lies under `prefix`, at a segment boundary. */
export function isUnder(prefix: string, path: string): boolean {
  const base = withoutSlash(prefix)
  return path.startsWith(base) && (path.length === base.length || path.charCodeAt(base.length) === 0x2f)
}

/**
 * A backend's `Location` in terms of our addresses: path, query and fragment under the route's prefix when it is on the
 * target's own origin and below the target's path. Undefined for everything else (decisions §7, Responses).
 * `backendPath` is what the request was sent to; relative locations are relative to it.
 */
export function rewriteLocation(
  location: string,
  route: PathMapping & { readonly target: { readonly origin: string } },
  backendPath: string,
): string | undefined {
  const origin = new URL(route.target.origin).origin
  const url = URL.parse(location, origin + backendPath)
  if (url === null || url.origin !== origin || url.username !== '' || url.password !== '') return undefined
  const suffix = url.search + url.hash
  if (route.exactTarget) return url.pathname === route.target.path ? route.path + suffix : undefined
  if (!isUnder(route.target.path, url.pathname)) return undefined
  const rest = url.pathname.slice(withoutSlash(route.target.path).length)
  const path = withoutSlash(route.path) + rest || '/'
  // Two slashes at the start would make the rest of it a host (RFC 3986 §4.2).
  return path.startsWith('//') ? undefined : path + suffix
}

const withoutSlash = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path)
