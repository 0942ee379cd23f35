const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/**
 * URL of the protected resource metadata of `resourceUrl`: the well-known segment goes between host and path, and the
 * slash of an empty path goes away (RFC 9728 §3.1). Throws TypeError when `resourceUrl` is not an absolute URL.
 */
export function metadataUrl(resourceUrl: string): string {
  const url = new URL(resourceUrl)
  return `${url.origin}${metadataPath(resourceUrl)}`
}

/** Path (and query) of the same document, for serving it. */
export function metadataPath(resourceUrl: string): string {
  const url = new URL(resourceUrl)
  return `${WELL_KNOWN}${url.pathname === '/' ? '' : url.pathname}${url.search}`
}
