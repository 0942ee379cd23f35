/** Characters of an address in a line of a log: somebody else may have named it. */
const MOST = 300

/** Where a URL leads, for people: without user, query and fragment, which may hold secrets; cut at 300 characters. */
export function shownUrl(url: string | URL): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`.slice(0, MOST)
}
