/** The relation between the paths of a route and of its target. */
export interface PathMapping {
  /** Path prefix of the route; `/` matches all. */
  readonly path: string
  /** Always sends exactly the target's path, without the rest after the prefix. */
  readonly exactTarget: boolean
  /** Its raw path, never empty. */
  readonly target: { readonly path: string }
}

/**
 * The backend's path for a request path under the route: the target's path, then the rest after the prefix, exactly
 * as received (decisions §7, Path). Two slashes at the seam become one.
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
 * Maps a backend's `Location` to the route: path, query and fragment under the route's prefix if it is on the
 * target's own origin and below the target's path. Undefined otherwise (decisions §7, Responses). `backendPath` is
 * the path of the request; relative locations are resolved against it.
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
  // Two leading slashes would turn the rest into a host (RFC 3986 §4.2).
  return path.startsWith('//') ? undefined : path + suffix
}

const withoutSlash = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path)
