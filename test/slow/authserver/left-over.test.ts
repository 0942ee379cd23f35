import { afterEach, describe, expect, it } from 'vitest'
import type { FailureCode } from '../../../src/core/index.ts'
import { createMemoryStore, type Store } from '../../../src/storage/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { Browser, textOf, type Seen } from '../../support/authserver/browser.ts'
import {
  authorizeUrl,
  backFrom,
  makePkce,
  register,
  startRig,
  upstreamOf,
  type Rig,
  type TestClient,
} from '../../support/authserver/rig.ts'
import { type Case, FAILURES, MARK } from '../../support/upstreams/failure-cases.ts'
import { ACCESS, startIdp, type Idp } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The user's page and the client's error. */
const EXPECTED: Partial<Record<FailureCode, readonly [number, string, string]>> = {
  login_refused: [403, 'You were not signed in', 'access_denied'],
  identity_provider_unavailable: [503, 'Sign-in is unavailable', 'temporarily_unavailable'],
  identity_provider_error: [502, 'Sign-in failed', 'server_error'],
  config_error: [500, 'Sign-in failed', 'server_error'],
}

/** The keys that are in a store. */
function watched(store: Store): { readonly store: Store; readonly keys: Set<string> } {
  const keys = new Set<string>()
  return {
    keys,
    store: {
      ...store,
      put: (key, ...rest) => (keys.add(key), store.put(key, ...rest)),
      putIfAbsent: (key, ...rest) => (keys.add(key), store.putIfAbsent(key, ...rest)),
      compareAndSet: (key, ...rest) => (keys.add(key), store.compareAndSet(key, ...rest)),
      take: (key) => (keys.delete(key), store.take(key)),
      delete: (key) => (keys.delete(key), store.delete(key)),
    },
  }
}

interface Login {
  readonly rig: Rig
  /** The identity provider at which it will fail. */
  readonly idp: Idp
  readonly client: TestClient
  readonly keys: ReadonlySet<string>
  readonly entries: () => number
  readonly before: number
}

/** A server with one upstream, or with a second one that a login visits after the first. */
async function open(legs: 1 | 2): Promise<Login> {
  const second = legs === 2 ? await startIdp(sockets) : undefined
  let kept: ReturnType<typeof watched> | undefined
  let memory: ReturnType<typeof createMemoryStore> | undefined
  const rig = await startRig(sockets, {
    store: (ports) => {
      memory = createMemoryStore(ports)
      kept = watched(memory)
      return kept.store
    },
    upstreams: (first) => [upstreamOf(first), ...(second === undefined ? [] : [upstreamOf(second, 'crm')])],
    resources: (url) => [{ url: `${url}/mcp`, scopes: [], providers: second === undefined ? [] : ['crm'] }],
  })
  const client = await register(rig)
  const entries = () => memory?.entries ?? -1
  const keys = kept?.keys ?? new Set<string>()
  return { rig, idp: second ?? rig.idp, client, keys, entries, before: entries() }
}

/** A login to the step at which it fails. */
async function fail({ rig, idp, client }: Login, step: string, one: Case): Promise<Seen> {
  const browser = new Browser()
  const asked = await browser.get(authorizeUrl(rig, client, makePkce(), { scope: undefined }))
  const isEarly = step === 'discovery' || one.isInMetadata === true
  if (isEarly) await one.arrange(idp)
  const sent = await browser.press(asked, 'continue')
  if (idp === rig.idp && step === 'discovery') return sent
  const first = backFrom(rig, sent)
  if (idp === rig.idp) return comeBack(browser, first, idp, one)
  const next = await browser.get(first)
  return step === 'discovery' ? next : comeBack(browser, backFrom({ ...rig, idp }, next), idp, one)
}

async function comeBack(browser: Browser, address: string, idp: Idp, one: Case): Promise<Seen> {
  await one.arrange(idp)
  const back = new URL(address)
  const parameters = one.parameters?.(idp)
  if (parameters !== undefined) {
    parameters.set('state', back.searchParams.get('state') ?? '')
    back.search = parameters.toString()
  }
  return browser.get(back.href)
}

/** The outcome of a failed login. */
async function outcomeOf(legs: 1 | 2, step: string, one: Case) {
  const login = await open(legs)
  const page = await fail(login, step, one)
  const { searchParams: answer } = new URL((/href="([^"]+)"/.exec(page.html)?.[1] ?? '').replaceAll('&amp;', '&'))
  const shown = page.html + login.rig.log.lines.join('')
  return {
    page: [page.status, textOf(page)],
    client: [answer.get('error'), answer.get('state'), answer.get('iss') === login.rig.issuer, answer.get('code')],
    shown: [MARK, ACCESS].filter((secret) => shown.includes(secret)),
    left: [login.entries() - login.before, [...login.keys].filter((key) => !key.startsWith('client:'))],
  }
}

/** The expected outcome. */
function expectedOf({ code }: Case) {
  const [status, title = 'no such failure', error] = EXPECTED[code] ?? []
  const page: unknown[] = [status, expect.stringContaining(title)]
  return { page, client: [error, 'state-of-the-client', true, null], shown: [], left: [0, []] }
}

describe.each(FAILURES)(
  'the user and the client get the error, and nothing is left in the store, when %s',
  (step, cases) => {
    it.each(cases)('$name', async (one) => expect(await outcomeOf(1, step, one)).toEqual(expectedOf(one)))

    it.each(cases.slice(0, 2))('of the second upstream $name', async (one) =>
      expect(await outcomeOf(2, step, one)).toEqual(expectedOf(one)),
    )
  },
)
