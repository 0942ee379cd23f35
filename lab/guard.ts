const LOCAL_HOSTS = new Set(['127.0.0.1', 'localhost', '[::1]'])

/**
 * Whether a request to the controls of a demo service comes from this machine's user and not from a page in their browser:
 * the `Host` is a loopback name (DNS rebinding) and there is no foreign `Origin`.
 */
export function isFromThisMachine(host: string | undefined, origin: string | undefined): boolean {
  if (host === undefined || !LOCAL_HOSTS.has(host.replace(/:\d+$/, ''))) return false
  return origin === undefined || (URL.canParse(origin) && LOCAL_HOSTS.has(new URL(origin).hostname))
}
