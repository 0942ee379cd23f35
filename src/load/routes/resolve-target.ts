import type { RouteTarget } from '../../core/index.ts'

/**
 * A target URL in the parts that are sent: path and query byte for byte as they are written (decisions §7, Path), the
 * host as a Host header has it. `url` has passed the schema.
 */
export function resolveTarget(url: string): RouteTarget {
  const { host, protocol } = new URL(url)
  const [, path = '', query = ''] = /^https?:\/\/[^/?]+([^?]*)\??(.*)$/.exec(url) ?? []
  return { origin: `${protocol}//${host}`, host, path: path === '' ? '/' : path, query }
}
