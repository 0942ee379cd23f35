import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { ClaimValue, FailureCode } from '../../../src/core/index.ts'
import { Browser, type Seen, textOf } from '../../support/authserver/browser.ts'
import { backFrom } from '../../support/authserver/rig.ts'
import {
  type Answered,
  type FailingOptions,
  type FailingWorld,
  firstLink,
  startFailing,
} from '../../support/connections/failing.ts'
import { type FakeServer, startFakeServer } from '../../support/connections/fake-server.ts'
import { asPerson, atService, client, connect } from '../../support/connections/rig.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { type Case, FAILURES, MARK } from '../../support/upstreams/failure-cases.ts'
import { ACCESS, type Answer, type Idp, REFRESH, SUBJECT } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** What is in the store after a failure: a link that still works, nothing, or a connection. */
type Left = 'link' | 'nothing' | 'connection' | 'unlisted'
const KINDS: Readonly<Record<Left, Readonly<Record<string, number>>>> = {
  link: { ticket: 1, prompt: 1 },
  nothing: {},
  connection: { connections: 1, session: 1, person: 1 },
  unlisted: { connections: 1, session: 1 },
}
const MINUTE_MS = 60_000

/** A person on the way from a link to a page. */
interface Visitor {
  readonly world: FailingWorld
  readonly browser: Browser
  readonly link: string
}

interface Row {
  readonly name: string
  readonly options?: FailingOptions | (() => Promise<FailingOptions>)
  /** From the link to the page at which the person ends. */
  readonly go: (visitor: Visitor) => Promise<Seen>
  readonly page: readonly [status: number, text: string]
  /** Default: the link still works. */
  readonly left?: Left
  /** Redirects and forms that another tab may still complete. Default 0. */
  readonly pending?: number
  /** Label of `extauth_connect_refusals_total`; undefined: the page is not counted. */
  readonly cause?: string | undefined
  /** `Retry-After` of the page. */
  readonly wait?: number | undefined
}

const LOST = [400, 'This can’t continue here'] as const
const UNKNOWN = [404, 'This link can’t be used any more'] as const
const OTHER = [403, 'This link was made for somebody else'] as const
const REFUSED = [403, 'Access was not allowed'] as const
const DOWN = [503, 'A service cannot be reached'] as const
const invalid = (status: number) => [status, 'This request can’t be accepted'] as const
const notConnected = (status: number) => [status, 'The account was not connected'] as const
const PAGES: Partial<Record<FailureCode, readonly [number, string]>> = {
  login_refused: REFUSED,
  identity_provider_unavailable: DOWN,
  identity_provider_error: notConnected(502),
  config_error: notConnected(500),
}

/** Values that no page and no log line shows. */
const SECRETS = [MARK, ACCESS, REFRESH, 'of us', 'code-1']

/** A failure, and what must hold after it for the person, the store and the client. */
async function expectOutcome(row: Row): Promise<void> {
  const { left = 'link', pending = 0 } = row
  const { options } = row
  const world = await startFailing(sockets, typeof options === 'function' ? await options() : options)
  const link = await firstLink(world)
  const page = await row.go({ world, browser: new Browser(), link })
  world.kept.recover()

  expect([page.status, textOf(page)]).toEqual([row.page[0], expect.stringContaining(row.page[1])])
  if (page.status >= 400) {
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(textOf(page)).toContain(`Request ${page.headers.get('x-request-id')}`)
  }
  if (row.wait !== undefined) expect(page.headers.get('retry-after')).toBe(String(row.wait))
  if (row.cause !== undefined) expect(world.metrics.value('extauth_connect_refusals_total', row.cause)).toBe(1)
  const shown = page.html + world.log.lines.join('\n')
  for (const secret of [...SECRETS, link.slice(-32)]) expect(shown).not.toContain(secret)

  expect(await world.kept.kinds()).toEqual({ ...KINDS[left], ...(pending === 0 ? {} : { login: pending }) })

  const answer = await world.call()
  const isConnected = left === 'connection' || left === 'unlisted'
  expect([answer.status, answer.outcome]).toEqual([200, isConnected ? 'connected' : 'asked'])
  if (left === 'link') expect(answer.link).toBe(link)
  else expect(answer.link).not.toBe(link)

  world.clock.advance(10 * MINUTE_MS)
  expect(await world.kept.kinds()).toEqual(isConnected ? KINDS[left] : {})
}

const consentOf = async ({ world, browser, link }: Visitor): Promise<Seen> =>
  asPerson(world, browser, await browser.get(link))
/** The redirect to the service. */
const sentOn = async (visitor: Visitor): Promise<Seen> => visitor.browser.press(await consentOf(visitor), 'continue')
const confirmOf = ({ html }: Seen): string => /name="confirm" value="([^"]+)"/.exec(html)?.[1] ?? ''
const post = ({ world, browser }: Visitor, body: URLSearchParams | string, headers: Record<string, string> = {}) =>
  browser.send(`${world.url}/connect/continue`, { method: 'POST', body, headers: { origin: world.url, ...headers } })
const form = (page: Seen, more: Record<string, string> = {}) =>
  new URLSearchParams({ confirm: confirmOf(page), decision: 'continue', ...more })
const CA = { caBundleRef: { name: 'idp', key: 'ca' } }
/** People prove the claim `tid`. */
const MATCHING: FailingOptions = { spec: ({ people }) => ({ login: [{ ...client(people), ...CA, match: ['tid'] }] }) }

describe('a link', () => {
  test.each<Row>([
    {
      name: 'opened by another person',
      go: async ({ world, browser, link }) => asPerson(world, browser, await browser.get(link), 'bob'),
      page: OTHER,
      cause: 'other_person',
    },
    {
      name: 'opened by another person with the cookies of the first',
      async go({ world, browser, link }) {
        const bob = new Browser()
        const sent = await browser.get(link)
        for (const [host, jar] of browser.cookies) bob.cookies.set(host, new Map(jar))
        return asPerson(world, bob, sent, 'bob')
      },
      page: OTHER,
      cause: 'other_person',
    },
    {
      name: 'opened again after it was used',
      async go({ world, browser, link }) {
        await connect(world, browser, link)
        return browser.get(link)
      },
      page: UNKNOWN,
      left: 'connection',
      cause: 'unknown',
    },
    ...['A'.repeat(32), 'A'.repeat(31), 'A'.repeat(4000), '', '%2e', `${'A'.repeat(16)}.${'A'.repeat(15)}`].map(
      (text): Row => ({
        name: `that never existed: /connect/${text.slice(0, 40)}`,
        go: ({ world, browser }) => browser.get(`${world.url}/connect/${text}`),
        page: UNKNOWN,
        cause: 'unknown',
      }),
    ),
    {
      name: 'that expired before it was opened',
      go({ world, browser, link }) {
        world.clock.advance(10 * MINUTE_MS)
        return browser.get(link)
      },
      page: UNKNOWN,
      left: 'nothing',
      cause: 'unknown',
    },
    {
      name: 'that expires during the login',
      async go({ world, browser, link }) {
        world.clock.advance(9 * MINUTE_MS)
        const sent = await browser.get(link)
        world.clock.advance(MINUTE_MS)
        return asPerson(world, browser, sent)
      },
      page: UNKNOWN,
      left: 'nothing',
      cause: 'unknown',
    },
    {
      name: 'whose login takes ten minutes',
      async go({ world, browser, link }) {
        const sent = await browser.get(link)
        world.clock.advance(10 * MINUTE_MS)
        return asPerson(world, browser, sent)
      },
      page: LOST,
      left: 'nothing',
      cause: 'other_browser',
    },
    {
      name: 'whose consent takes ten minutes',
      async go(visitor) {
        const page = await consentOf(visitor)
        visitor.world.clock.advance(10 * MINUTE_MS)
        return visitor.browser.press(page, 'continue')
      },
      page: LOST,
      left: 'nothing',
      cause: 'other_browser',
    },
    {
      name: 'whose person stays ten minutes at the service',
      async go(visitor) {
        const sent = await sentOn(visitor)
        visitor.world.clock.advance(10 * MINUTE_MS)
        return atService(visitor.world, visitor.browser, sent)
      },
      page: LOST,
      left: 'nothing',
      cause: 'other_browser',
    },
    {
      name: 'opened three times by a mail scanner',
      async go({ browser, link }) {
        await new Browser().get(link)
        await new Browser().get(link)
        return browser.get(link)
      },
      page: [303, ''],
      pending: 3,
    },
    {
      name: 'of which a preview asks for the head',
      go: ({ browser, link }) => browser.send(link, { method: 'HEAD' }),
      page: [303, ''],
      pending: 1,
    },
    {
      name: 'whose person can not reach the login page',
      go: ({ browser, link }) => browser.get(link),
      page: [303, ''],
      pending: 1,
    },
    {
      name: 'whose person can not reach the page of the service',
      go: sentOn,
      page: [303, ''],
      left: 'nothing',
      pending: 1,
    },
    {
      name: 'in two tabs, one after the other',
      async go(visitor) {
        const other = await consentOf(visitor)
        await sentOn(visitor)
        return visitor.browser.press(other, 'continue')
      },
      page: UNKNOWN,
      left: 'nothing',
      pending: 1,
      cause: 'unknown',
    },
    {
      name: 'in two tabs at the same time',
      async go(visitor) {
        const tabs = [await consentOf(visitor), await consentOf(visitor)]
        const pages = await Promise.all(tabs.map((tab) => visitor.browser.press(tab, 'continue')))
        const [lost, ...more] = pages.toSorted((one, other) => other.status - one.status)
        expect(more.map(({ status }) => status)).toEqual([303])
        return lost as Seen
      },
      page: UNKNOWN,
      left: 'nothing',
      pending: 1,
    },
    {
      name: 'canceled in a second tab after it was used',
      async go(visitor) {
        const other = await consentOf(visitor)
        await connect(visitor.world, visitor.browser, visitor.link)
        return visitor.browser.press(other, 'cancel')
      },
      page: [200, 'Nothing was connected'],
      left: 'connection',
    },
    {
      name: 'canceled at the consent page',
      go: async (visitor) => visitor.browser.press(await consentOf(visitor), 'cancel'),
      page: [200, 'Nothing was connected'],
      left: 'nothing',
      cause: 'canceled',
    },
  ])('$name', expectOutcome)

  const claims: readonly (readonly [string, unknown])[] = [
    ['is missing', undefined],
    ['is a list', ['t1']],
    ['is a number', 1],
    ['is true', true],
    ['is null', null],
    ['is an object', { t: 't1' }],
    ['differs in case', 'T1'],
    ['ends with a space', 't1 '],
  ]
  test.each<Row>(
    claims.map(([name, tid]) => ({
      name: `whose claim of \`match\` ${name} in the ID token`,
      options: { ...MATCHING, claims: { tid: 't1' } },
      async go({ world, browser, link }) {
        world.people.claims = { tid }
        return asPerson(world, browser, await browser.get(link))
      },
      page: OTHER,
      cause: 'other_person',
    })),
  )('$name', expectOutcome)
})

describe('a request that no page of the proxy sends', () => {
  /** A consent page, and a form that is posted after it. */
  const posted = (
    name: string,
    page: Row['page'],
    send: (visitor: Visitor, consent: Seen) => Promise<Seen>,
    more: Partial<Row> = {},
  ): Row => ({ name, page, pending: 1, ...more, go: async (visitor) => send(visitor, await consentOf(visitor)) })
  const method = (name: string, path: (link: string) => string): Row => ({
    name: `${name} ${path('…/connect/…')}`,
    go: ({ browser, link }) => browser.send(path(link), { method: name }),
    page: invalid(405),
  })

  test.each<Row>([
    method('POST', (link) => link),
    method('PUT', (link) => link),
    method('DELETE', (link) => link),
    method('GET', (link) => link.replace(/[^/]+$/, 'continue')),
    method('POST', (link) => link.replace(/[^/]+$/, 'callback')),
    method('DELETE', (link) => link.replace(/connect\/[^/]+$/, 'connections')),
    posted('a form of a different origin', invalid(403), (visitor, page) =>
      post(visitor, form(page), { origin: 'https://evil.example' }),
    ),
    posted('a form of an opaque origin', invalid(403), (visitor, page) =>
      post(visitor, form(page), { origin: 'null' }),
    ),
    posted(
      'a form without its token',
      LOST,
      (visitor) => post(visitor, new URLSearchParams({ decision: 'continue' })),
      {
        cause: 'other_browser',
      },
    ),
    posted('a form with a wrong token', LOST, (visitor, page) =>
      post(visitor, form(page, { confirm: `${confirmOf(page).split('.')[0]}.${'A'.repeat(43)}` })),
    ),
    posted(
      'a form with the token of a different login',
      LOST,
      async (visitor, page) => {
        const other = confirmOf(await consentOf(visitor)).split('.')[1]
        return post(visitor, form(page, { confirm: `${confirmOf(page).split('.')[0]}.${other}` }))
      },
      { pending: 2 },
    ),
    posted('a form without cookie', LOST, ({ world }, page) =>
      post({ world, browser: new Browser(), link: '' }, form(page)),
    ),
    posted('a form with a wrong cookie', LOST, ({ world, browser }, page) => {
      const jar = browser.cookies.get(new URL(world.url).host)
      const other = new Browser()
      other.cookies.set(new URL(world.url).host, new Map([...(jar ?? [])].map(([name]) => [name, 'A'.repeat(43)])))
      return post({ world, browser: other, link: '' }, form(page))
    }),
    posted('a form without a decision', invalid(400), (visitor, page) => post(visitor, form(page, { decision: '' }))),
    posted('a form as JSON', invalid(400), (visitor) =>
      post(visitor, '{"decision":"continue"}', { 'content-type': 'application/json' }),
    ),
    posted('a form of 33 KiB', invalid(413), (visitor, page) =>
      post(visitor, form(page, { more: 'x'.repeat(33 * 1024) })),
    ),
    posted(
      'a form for the second time',
      LOST,
      async (visitor, page) => {
        await visitor.browser.press(page, 'continue')
        return visitor.browser.press(page, 'continue')
      },
      { left: 'nothing' },
    ),
    {
      name: 'a header section of 17 KiB',
      go: ({ browser, link }) => browser.get(link, { cookie: `x=${'y'.repeat(17 * 1024)}` }),
      page: [431, 'Request too large'],
    },
    {
      name: 'the 51st page of a second',
      async go({ browser, link }) {
        for (let index = 0; index < 50; index++) await browser.get(link.replace(/[^/]+$/, 'no-link'))
        return browser.get(link)
      },
      page: [429, 'Too many attempts'],
      wait: 1,
    },
  ])('$name', expectOutcome)
})

describe('a response of an identity provider or a service that is not expected here', () => {
  const back = (
    at: 'people' | 'service',
    name: string,
    change: (url: URL, visitor: Visitor) => unknown,
    more: Partial<Row> = {},
  ): Row => ({
    name: `${name} (${at})`,
    page: LOST,
    left: at === 'people' ? 'link' : 'nothing',
    pending: 1,
    cause: 'other_browser',
    ...more,
    async go(visitor) {
      const { world, browser, link } = visitor
      const sent = at === 'people' ? await browser.get(link) : await sentOn(visitor)
      const url = new URL(backFrom({ idp: world[at], clock: world.clock }, sent))
      const page = await change(url, visitor)
      return page === undefined ? browser.get(url.href) : (page as Seen)
    },
  })
  const stateOf = (url: URL): string => url.searchParams.get('state') ?? ''
  test.each<Row>(
    (['people', 'service'] as const).flatMap((at) => [
      back(at, 'without state', (url) => url.searchParams.delete('state')),
      back(at, 'with a wrong state', (url) =>
        url.searchParams.set('state', `${stateOf(url).split('.')[0]}.${'A'.repeat(43)}`),
      ),
      back(at, 'with a state of nobody', (url) => url.searchParams.set('state', 'A'.repeat(62))),
      back(at, 'with two states', (url) => url.searchParams.append('state', stateOf(url))),
      back(at, 'in a different browser', (url) => new Browser().get(url.href)),
      back(at, 'without cookie', ({ href }, { browser }) => {
        browser.cookies.clear()
        return browser.get(href)
      }),
      back(
        at,
        'for the second time',
        async ({ href }, { browser }) => {
          await browser.get(href)
          return browser.get(href)
        },
        at === 'people' ? {} : { left: 'connection', pending: 0 },
      ),
      back(
        at,
        'by POST',
        ({ href }, { browser, world }) =>
          browser.send(href, { method: 'POST', body: new URLSearchParams(), headers: { origin: world[at].url } }),
        { page: invalid(405), cause: undefined },
      ),
    ]),
  )('$name', expectOutcome)
})

/** All failures of an upstream: of the login that proves who the person is, and of the service. */
describe.each(['people', 'service'] as const)('%s fails', (at) => {
  const returned = async ({ world, browser }: Visitor, sent: Seen, idp: Idp, one: Case): Promise<Seen> => {
    const url = new URL(backFrom({ idp, clock: world.clock }, sent))
    await one.arrange(idp)
    const parameters = one.parameters?.(idp)
    if (parameters !== undefined) {
      parameters.set('state', url.searchParams.get('state') ?? '')
      url.search = parameters.toString()
    }
    return browser.get(url.href)
  }
  const rowOf = (step: string, one: Case, options: FailingOptions = {}): Row => {
    const isBefore = step === 'discovery'
    return {
      name: `${step}: ${one.name}`,
      options,
      async go(visitor) {
        const { world, browser, link } = visitor
        const idp = world[at]
        const isEarly = isBefore || one.isInMetadata === true
        if (at === 'people' && isEarly) await one.arrange(idp)
        const consent = at === 'people' ? await browser.get(link) : await consentOf(visitor)
        if (at === 'service' && isEarly) await one.arrange(idp)
        const sent = at === 'people' ? consent : await browser.press(consent, 'continue')
        return isBefore ? sent : returned(visitor, sent, idp, one)
      },
      page: PAGES[one.code] ?? [0, 'no such failure'],
      // The link is used when the browser leaves for the service.
      left: at === 'service' && !isBefore ? 'nothing' : 'link',
      wait: one.wait,
    }
  }
  test.each(FAILURES.flatMap(([step, cases]) => cases.map((one) => rowOf(step, one))))('$name', expectOutcome)

  const never: Answer = { after: new Promise(() => undefined) }
  const silent: readonly (readonly [string, Case['arrange']])[] = [
    ['discovery', (idp) => (idp.discovery = never)],
    ['tokens', (idp) => (idp.token = never)],
    ['keys', (idp) => (idp.jwks = never)],
  ]
  test.each<Row>(
    silent.map(([step, arrange]) =>
      rowOf(
        step,
        { name: 'no answer in time', arrange, code: 'identity_provider_unavailable' },
        { outbound: { deadlineMs: 300 } },
      ),
    ),
  )('$name', expectOutcome)
})

describe('a key', () => {
  const GOOD = 'lin_abc123'
  /** A service that tests keys: `answer` for its request. */
  const keyOptions = (url: string, more: object = {}): FailingOptions => ({
    provider: 'tracker',
    spec: () => ({
      providers: [
        {
          name: 'tracker',
          type: 'secret',
          secret: { label: 'API key', pattern: '(lin|bad)_[a-z0-9]+', test: { url, header: 'X-Key' } },
        },
      ],
      ...more,
    }),
  })
  const enter = async (visitor: Visitor, key: string): Promise<Seen> => {
    const page = await visitor.browser.press(await consentOf(visitor), 'continue', { key })
    if (key.trim() !== '') expect(page.html).not.toContain(key)
    return page
  }
  const notSent: readonly (readonly [string, string])[] = [
    ['is empty', ''],
    ['is blank', '   '],
    ['does not have the pattern', 'ghp_abc'],
    ['has more after it', `${GOOD} and`],
    ['has two lines', `${GOOD}\nx-other: 1`],
    ['has other letters', 'lin_ä'],
    ['has 4,097 characters', `lin_${'a'.repeat(4093)}`],
  ]
  test.each<Row>(
    notSent.map(([name, key]) => ({
      name: `that ${name}`,
      // Nothing listens there: a request would give a different page.
      options: keyOptions('http://127.0.0.1:1/'),
      go: (visitor) => enter(visitor, key),
      page: [422, 'This is not a valid API key'],
      pending: 1,
    })),
  )('$name', expectOutcome)

  const status =
    (code: number, headers: Record<string, string> = {}): RequestListener =>
    (_request, response) =>
      void response.writeHead(code, headers).end(MARK)
  const wrong = (code: number) => [422, `did not accept this API key (status ${code})`] as const
  const unchecked = [503, 'can’t check this API key now'] as const
  const tested: readonly (readonly [string, Row['page'], RequestListener | undefined])[] = [
    ['is rejected with 401', wrong(401), status(401)],
    ['is rejected with 403', wrong(403), status(403)],
    ['leads to a redirect', wrong(302), status(302, { location: 'http://127.0.0.1:1/elsewhere' })],
    ['gets 204', wrong(204), status(204)],
    ['gets 429', unchecked, status(429, { 'retry-after': '60' })],
    ['gets 500', unchecked, status(500)],
    ['gets no response', unchecked, (request) => void request.socket.destroy()],
    ['gets no response in time', unchecked, () => undefined],
    ['gets a response of 2 MiB', unchecked, (_request, response) => void response.end('x'.repeat(2 * 1024 * 1024))],
    ['is for a service that can’t be reached', unchecked, undefined],
  ]
  test.each<Row>(
    tested.map(([name, page, listener]) => ({
      name: `that ${name}`,
      async options() {
        const url = listener === undefined ? 'http://127.0.0.1:1/' : await sockets.http(listener)
        return { ...keyOptions(url), outbound: { deadlineMs: 300 } }
      },
      go: (visitor) => enter(visitor, GOOD),
      page,
      pending: 1,
    })),
  )('$name', expectOutcome)

  test.each<Row>([
    {
      name: 'that is not entered: canceled',
      options: keyOptions('http://127.0.0.1:1/'),
      go: async (visitor) => visitor.browser.press(await consentOf(visitor), 'cancel', { key: GOOD }),
      page: [200, 'Nothing was connected'],
      left: 'nothing',
      cause: 'canceled',
    },
    {
      name: 'that is entered again in the same form after a wrong one',
      options: async () =>
        keyOptions(
          await sockets.http((request, response) =>
            response.writeHead(request.headers['x-key'] === GOOD ? 200 : 401).end(),
          ),
        ),
      async go(visitor) {
        const again = await enter(visitor, 'bad_1')
        return visitor.browser.press(again, 'continue', { key: GOOD })
      },
      page: [200, 'Your account at tracker is connected'],
      left: 'connection',
    },
  ])('$name', expectOutcome)
})

describe('the store is down', () => {
  const down = (
    name: string,
    reach: (visitor: Visitor) => Promise<() => Promise<Seen>>,
    more: Partial<Row> = {},
  ): Row => ({
    name,
    page: DOWN,
    ...more,
    async go(visitor) {
      const last = await reach(visitor)
      visitor.world.kept.fail()
      const page = await last()
      expect(visitor.world.kept.failed).not.toEqual([])
      return page
    },
  })
  test.each<Row>([
    down(
      'when the link is opened',
      async ({ browser, link }) =>
        () =>
          browser.get(link),
    ),
    down(
      'when the person comes back from the login',
      async ({ world, browser, link }) => {
        const sent = await browser.get(link)
        return () => asPerson(world, browser, sent)
      },
      { pending: 1 },
    ),
    down(
      'when the person consents',
      async (visitor) => {
        const page = await consentOf(visitor)
        return () => visitor.browser.press(page, 'continue')
      },
      { pending: 1 },
    ),
    down(
      'when the person cancels',
      async (visitor) => {
        const page = await consentOf(visitor)
        return () => visitor.browser.press(page, 'cancel')
      },
      { pending: 1 },
    ),
    down(
      'when the person comes back from the service',
      async (visitor) => {
        const sent = await sentOn(visitor)
        return () => atService(visitor.world, visitor.browser, sent)
      },
      { left: 'nothing', pending: 1 },
    ),
  ])('$name', expectOutcome)

  /** Operations of the last step, in order, and what a failure leaves behind. */
  const OPERATIONS: readonly (readonly [operation: string, page: Row['page'], left: Left, pending?: number])[] = [
    ['take login', DOWN, 'nothing', 1],
    ['putIfAbsent session', DOWN, 'nothing'],
    ['get session', DOWN, 'nothing'],
    ['compareAndSet session', DOWN, 'nothing'],
    ['get connections', DOWN, 'nothing'],
    ['get connections', DOWN, 'nothing'],
    ['compareAndSet connections', DOWN, 'nothing'],
  ]
  const lastStep =
    (operation: string, from: number, count: number): Row['go'] =>
    async (visitor) => {
      const { world, browser } = visitor
      const sent = await sentOn(visitor)
      world.kept.fail(from, count)
      const page = await atService(world, browser, sent)
      expect(world.kept.failed[0]).toBe(operation)
      return page
    }
  test.each<Row>(
    OPERATIONS.flatMap(([operation, page, left, pending = 0], index): Row[] => [
      { name: `for ${operation} (${index + 1})`, page, left, pending, go: lastStep(operation, index + 1, 1) },
      {
        name: `from ${operation} (${index + 1}) on`,
        page,
        left,
        pending,
        go: lastStep(operation, index + 1, Infinity),
      },
    ]),
  )('$name', expectOutcome)

  test.each<Row>([
    {
      name: 'for the list of accounts: the connection works, and is missing on its page',
      page: [200, 'Your account at github is connected'],
      left: 'unlisted',
      go: lastStep('get person', 8, Infinity),
    },
  ])('$name', expectOutcome)
})

describe('a call', () => {
  const answered = async (
    options: FailingOptions,
    prepare: (world: FailingWorld) => Promise<Answered>,
  ): Promise<{ readonly answer: Answered; readonly kinds: Readonly<Record<string, number>> }> => {
    const world = await startFailing(sockets, options)
    const answer = await prepare(world)
    world.kept.recover()
    return { answer, kinds: await world.kept.kinds() }
  }

  test.each<[ClaimValue | undefined]>([[undefined], [['t1']], [{ t: 1 }], [true], [null], ['']])(
    'of a caller whose claim of `match` is %j is an error of the configuration',
    async (tid) => {
      const claims = tid === undefined ? {} : { tid }
      const { answer, kinds } = await answered({ ...MATCHING, claims }, (world) => world.call())
      expect(answer).toEqual({ status: 500, outcome: 'config_error', link: undefined, retryAfter: null })
      expect(kinds).toEqual({})
    },
  )

  test('of a caller of an issuer without `login` is an error of the configuration', async () => {
    const { answer, kinds } = await answered({}, (world) =>
      world.call(createCaller({ issuer: 'https://other.example', subject: SUBJECT })),
    )
    expect(answer).toEqual({ status: 500, outcome: 'config_error', link: undefined, retryAfter: null })
    expect(kinds).toEqual({})
  })

  test('while the store is down gets 503 with Retry-After', async () => {
    const { answer, kinds } = await answered({}, (world) => {
      world.kept.fail()
      return world.call()
    })
    expect(answer).toMatchObject({ status: 503, outcome: 'store_unavailable', link: undefined })
    expect(Number(answer.retryAfter)).toBeGreaterThan(0)
    expect(kinds).toEqual({})
  })

  test('that needs the eleventh link of a minute gets 429 with Retry-After', async () => {
    const { answer } = await answered({}, async (world) => {
      for (let index = 0; index < 10; index++)
        await world.links.link(world.caller, 'code', {
          provider: 'github',
          problem: 'insufficient_scope',
          scopes: [`scope-${index}`],
        })
      return world.call()
    })
    expect(answer).toEqual({ status: 429, outcome: 'rate_limited', link: undefined, retryAfter: '60' })
  })
})

describe('the configuration changed after the link was made', () => {
  const changed = (
    name: string,
    more: Parameters<FailingWorld['replica']>[0],
    step: 'open' | 'press',
    page: Row['page'],
  ): Row => ({
    name,
    page,
    async go(visitor) {
      const { world, browser, link } = visitor
      const other = world.replica(more)
      await other.opened()
      if (step === 'open') {
        world.serveReplica(other)
        return browser.get(link)
      }
      const consent = await consentOf(visitor)
      world.serveReplica(other)
      return browser.press(consent, 'continue')
    },
  })
  test.each<Row>([
    changed('no login for the issuer', { login: [] }, 'open', notConnected(500)),
    changed('no such provider', { providers: [] }, 'press', notConnected(500)),
  ])('$name', expectOutcome)
})

describe('discovery of a remote MCP server', () => {
  const elsewhere = 'https://other.example'
  const resource = (more: object) => (at: FakeServer) => (at.resource = { ...(at.resource as object), ...more })
  const server = (more: object) => (at: FakeServer) => (at.server = { ...(at.server as object), ...more })
  const found: readonly (readonly [string, Row['page'], (at: FakeServer) => unknown])[] = [
    [
      'finds no challenge and no metadata',
      notConnected(502),
      (at) => Object.assign(at, { challenge: [401, undefined], resource: undefined, server: undefined }),
    ],
    [
      'finds a challenge that names no metadata',
      notConnected(502),
      (at) => Object.assign(at, { challenge: [401, 'Bearer'], resource: undefined, server: undefined }),
    ],
    ['gets no response of the server', DOWN, (at) => (at.challenge = undefined)],
    ['finds metadata of text', notConnected(502), (at) => (at.resource = '<html>')],
    ['finds metadata of a list', notConnected(502), (at) => (at.resource = [])],
    ['finds metadata of 65 KiB', notConnected(502), resource({ more: 'x'.repeat(65 * 1024) })],
    ['finds metadata of a different resource', notConnected(502), resource({ resource: `${elsewhere}/mcp` })],
    [
      'finds metadata of a resource beside it',
      notConnected(502),
      (at) => resource({ resource: `${at.url}/other` })(at),
    ],
    [
      'finds metadata without a resource',
      notConnected(502),
      (at) => (at.resource = { authorization_servers: [at.url] }),
    ],
    ['finds no authorization server', notConnected(502), resource({ authorization_servers: [] })],
    [
      'finds an authorization server on plain http',
      notConnected(502),
      resource({ authorization_servers: ['http://as.example'] }),
    ],
    [
      'finds an authorization server at a private address',
      notConnected(502),
      resource({ authorization_servers: ['https://10.0.0.1'] }),
    ],
    ['finds no metadata of the authorization server', notConnected(502), (at) => (at.server = undefined)],
    ['finds server metadata of 65 KiB', notConnected(502), server({ more: 'x'.repeat(65 * 1024) })],
    ['finds server metadata of a different issuer', notConnected(502), server({ issuer: elsewhere })],
    [
      'finds server metadata whose issuer has a slash more',
      notConnected(502),
      (at) => server({ issuer: `${at.url}/` })(at),
    ],
    ['finds no PKCE', notConnected(502), server({ code_challenge_methods_supported: undefined })],
    ['finds PKCE of plain text only', notConnected(502), server({ code_challenge_methods_supported: ['plain'] })],
    ['finds no authorization endpoint', notConnected(502), server({ authorization_endpoint: undefined })],
    ['finds a token endpoint on plain http', notConnected(502), server({ token_endpoint: 'http://as.example/token' })],
    ['finds no way to become a client', notConnected(500), server({ registration_endpoint: undefined })],
    [
      'is refused as a client',
      notConnected(500),
      (at) => (at.registration = [400, { error: 'invalid_client_metadata' }]),
    ],
    ['is refused as a client without a reason', notConnected(500), (at) => (at.registration = [403, 'no'])],
    ['can’t register while the server is down', DOWN, (at) => (at.registration = [503, {}])],
    ['registers and gets no client id', notConnected(502), (at) => (at.registration = [201, {}])],
  ]
  test.each<Row>(
    found.map(([name, page, arrange]) => ({
      name,
      async options() {
        const at = await startFakeServer(sockets)
        arrange(at)
        const spec = () => ({ providers: [{ name: 'notes', type: 'mcp', mcp: {} }] })
        return { provider: 'notes', backend: `${at.url}/mcp`, spec }
      },
      go: sentOn,
      page,
    })),
  )('$name', expectOutcome)
})
