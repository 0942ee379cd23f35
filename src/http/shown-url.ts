/** Maximum length of a URL in a log line: it may come from another system. */
const MOST = 300

/** A URL for display: without user, query and fragment, which may contain secrets; at most 300 characters. */
export function shownUrl(url: string | URL): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`.slice(0, MOST)
}
