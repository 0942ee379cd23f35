/** A browser's result: the page, or the redirect. */
export interface Seen {
  readonly status: number
  readonly url: string
  readonly html: string
  readonly location: string | undefined
  readonly headers: Headers
}

/** Sends the requests of a browser. */
export type Send = (url: string, init: RequestInit) => Promise<Response>

/** A browser without script: keeps cookies per host as browsers do, sends forms with their origin, follows no redirect automatically. */
export class Browser {
  readonly cookies = new Map<string, Map<string, string>>()
  readonly #headers: Readonly<Record<string, string>>

  readonly #fetch: Send

  /** `headers` are sent with every request; `send` is used instead of `fetch`. */
  constructor(headers: Readonly<Record<string, string>> = {}, send: Send = fetch) {
    this.#headers = headers
    this.#fetch = send
  }

  async get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Seen> {
    return this.#send(url, { headers })
  }

  /** Presses a button of the page's form; `entered` is put over its fields. */
  press(page: Seen, decision: string, entered: Readonly<Record<string, string>> = {}): Promise<Seen> {
    return this.submit(page, { decision, ...entered })
  }

  /** Sends the page's form with these fields beside the hidden ones. */
  async submit(page: Seen, fields: Readonly<Record<string, string>>): Promise<Seen> {
    const action = /<form method="post" action="([^"]+)"/.exec(page.html)?.[1]
    if (action === undefined) throw new Error(`no form in ${page.html}`)
    const hidden = [...page.html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
    const form = new URLSearchParams(hidden.map(([, name = '', value = '']): [string, string] => [name, value]))
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    const url = new URL(action, page.url)
    return this.#send(url.href, { method: 'POST', body: form, headers: { origin: url.origin } })
  }

  /** Any other request, with the cookies of the host. */
  send(url: string, init: RequestInit): Promise<Seen> {
    return this.#send(url, init)
  }

  /** Names of the cookies that the host has set here. */
  names(url: string): string[] {
    return [...(this.cookies.get(new URL(url).host)?.keys() ?? [])]
  }

  async #send(url: string, init: RequestInit): Promise<Seen> {
    const { host } = new URL(url)
    const jar = this.cookies.get(host) ?? new Map<string, string>()
    this.cookies.set(host, jar)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = {
      ...this.#headers,
      ...(init.headers as Record<string, string>),
      ...(cookie === '' ? {} : { cookie }),
    }
    const response = await this.#fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ')
      const [name = '', value = ''] = pair.split('=')
      if (attributes.includes('Max-Age=0')) jar.delete(name)
      else jar.set(name, value)
    }
    const location = response.headers.get('location') ?? undefined
    return { status: response.status, url, html: await response.text(), location, headers: response.headers }
  }
}

/** The text of a page as a human reads it. */
export const textOf = (page: Seen): string =>
  page.html
    .replace(/<style>[\s\S]*?<\/style>/g, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&#39;/g, "'")
    .replace(/&quot;/g, '"')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ')
    .trim()
