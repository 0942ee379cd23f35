import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type Outbound, SYSTEM_CLOCK } from '../../src/core/index.ts'
import { createOutbound } from '../../src/net/index.ts'
import { labConfig } from '../../src/cli/index.ts'

/** More pages than any login of the lab has. */
const MOST_STEPS = 20

/** What the person in front of the browser enters. */
interface Entered {
  readonly user: string
  /** For a form that asks for a key. */
  readonly key?: string
}

/** Follows redirects and presses buttons until `end` recognizes a page. Calls `refuse` for a page that it can't use. */
async function follow<T>(
  start: string,
  entered: Entered,
  end: (page: Page) => T | undefined,
  refuse: (reason: string) => never,
): Promise<T> {
  const ca = await readFile(path.join(labConfig(), 'secrets/lab-idp-ca/ca.crt'))
  const outbound = createOutbound({ name: 'lab', clock: SYSTEM_CLOCK, breaker: false, caCert: () => ca })
  const browser = new TextBrowser(outbound)
  try {
    let page = await browser.open(start)
    for (let step = 0; step < MOST_STEPS; step++) {
      const found = end(page)
      if (found !== undefined) return found
      if (page.location !== undefined) page = await browser.open(page.location)
      else page = (await browser.press(page, entered)) ?? refuse(unusable(page.html, entered.user))
    }
    return refuse('the login does not come to an end')
  } finally {
    await outbound.close()
  }
}

/**
 * Acts as a user in a browser on the lab's own pages: presses "continue" on the consent page and picks `user` where
 * the demo services ask for the user. Returns the callback parameters at `end`. Calls `refuse` for a page that
 * it can't use.
 */
export const clickThrough = (
  start: URL,
  end: string,
  user: string,
  refuse: (reason: string) => never,
): Promise<URLSearchParams> =>
  follow(
    start.href,
    { user },
    ({ location }) => (location?.startsWith(end) === true ? new URL(location).searchParams : undefined),
    refuse,
  )

/**
 * Opens a link for connecting an account as a user in a browser, enters `key` where a form asks for one, and returns
 * the heading of the last page. Calls `refuse` for an error page and one that it can't use.
 */
export const connectThrough = (link: string, entered: Entered, refuse: (reason: string) => never): Promise<string> =>
  follow(
    link,
    entered,
    ({ status, location, html }) => {
      if (location !== undefined) return undefined
      if (status >= 400) return refuse(`${textIn('h1', html)} (status ${status})`)
      return html.includes('<form') ? undefined : textIn('h1', html)
    },
    refuse,
  )

/** Why a page has no button to press: most often a user whom it does not offer. */
function unusable(html: string, user: string): string {
  const offered = [...html.matchAll(/name="user" value="([^"]*)"/g)].map(([, name = '']) => name)
  return offered.length === 0
    ? `a page can't be used: ${textIn('title', html)}`
    : `the page "${textIn('title', html)}" offers ${offered.join(', ')}, not ${user}`
}

const textIn = (element: 'title' | 'h1', html: string): string =>
  new RegExp(`<${element}>([^<]*)</${element}>`).exec(html)?.[1] ?? `no ${element}`

interface Page {
  readonly url: string
  readonly status: number
  readonly html: string
  /** Where it sends the browser. */
  readonly location: string | undefined
}

/** Keeps cookies per host, follows no redirect automatically. */
class TextBrowser {
  readonly #outbound: Outbound
  readonly #cookies = new Map<string, Map<string, string>>()

  constructor(outbound: Outbound) {
    this.#outbound = outbound
  }

  open(url: string): Promise<Page> {
    return this.#send(url, undefined)
  }

  /** Sends the page's form with what a button of it says; undefined when there is no such form or button. */
  async press(page: Page, { user, key }: Entered): Promise<Page | undefined> {
    const action = /<form method="post" action="([^"]+)"/.exec(page.html)?.[1]
    if (action === undefined) return undefined
    const form = new URLSearchParams()
    for (const [, name = '', value = ''] of page.html.matchAll(
      /<input type="hidden" name="([^"]+)" value="([^"]*)"/g,
    )) {
      form.set(name, value)
    }
    if (page.html.includes('name="key"') && key !== undefined) form.set('key', key)
    if (page.html.includes('name="decision"')) form.set('decision', 'continue')
    else if (page.html.includes(`name="user" value="${user}"`)) form.set('user', user)
    else return undefined
    return this.#send(new URL(action, page.url).href, form)
  }

  async #send(url: string, form: URLSearchParams | undefined): Promise<Page> {
    const { host, origin } = new URL(url)
    const jar = this.#cookies.get(host) ?? new Map<string, string>()
    this.#cookies.set(host, jar)
    const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
    const { status, headers, body } = await this.#outbound.request({
      method: form === undefined ? 'GET' : 'POST',
      url,
      headers: {
        ...(cookie === '' ? {} : { cookie }),
        ...(form === undefined ? {} : { origin, 'content-type': 'application/x-www-form-urlencoded' }),
      },
      ...(form === undefined ? {} : { body: form.toString() }),
    })
    for (const line of (headers['set-cookie'] ?? '').split(/, (?=[^;,= ]+=)/)) {
      const [pair = '', ...attributes] = line.split(/; */)
      const at = pair.indexOf('=')
      if (attributes.includes('Max-Age=0')) jar.delete(pair.slice(0, at))
      else if (at > 0) jar.set(pair.slice(0, at), pair.slice(at + 1))
    }
    const { location } = headers
    return { url, status, html: body.toString('utf8'), location: location && new URL(location, url).href }
  }
}
