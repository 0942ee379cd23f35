import { Browser, type Seen, type Send } from '../../test/support/authserver/browser.ts'
import type { Expectation } from '../oracle/call.ts'
import { type FaultSpan, type Part, unwell } from '../oracle/excuses.ts'
import { promptIn } from '../oracle/judge.ts'
import type { Random } from '../random.ts'
import { MOST_CONNECTED_SECONDS } from '../world/configuration.ts'
import { ask, type Caller } from './caller.ts'
import { type Body, modernCall } from './messages.ts'
import { needsOf } from './routes.ts'

/** A person with an account at the workspace; one caller at a time acts as this person. */
export interface Person {
  readonly subject: string
  /** The state of the connection, and since when, in milliseconds of `performance.now()`. */
  connection: { readonly is: 'absent' | 'present' | 'unknown'; readonly since: number }
}

/** The people of a run, and what others can do to their connections. */
export interface People {
  /** A person whom no caller uses; undefined without one. */
  take(random: Random): Person | undefined
  giveBack(person: Person): void
  /** The workspace ends everything that it issued to this person. */
  revoke(subject: string): void
  /** An operator ends the person's connections; rejects when the proxy does not do it. */
  disconnect(subject: string): Promise<void>
}

export function createPeople(subjects: readonly string[], ways: Pick<People, 'revoke' | 'disconnect'>): People {
  const free: Person[] = subjects.map((subject) => ({ subject, connection: { is: 'absent', since: -Infinity } }))
  return {
    ...ways,
    take: (random) => free.splice(random.between(0, Math.max(0, free.length - 1)), 1)[0],
    giveBack: (person) => void free.push(person),
  }
}

const PROVIDER = 'workspace'
/** Replicas learn within 2 s that a connection has ended. */
const SPREAD_MS = 2_500
/** Between the clocks of the harness and of the replicas, and for the request itself. */
const END_TOLERANCE_MS = 5_000
const MOST_CONNECTED_MS = MOST_CONNECTED_SECONDS * 1_000
const PAGE_MS = 30_000
/** Faults under which a replica may use what another has ended, or end it by another clock. */
const MAY_DIFFER: readonly Part[] = ['store', 'replica', 'drain', 'pause', 'descriptors', 'clock']

/** Required outcome of a call of this person at a moment, given the faults since the connection was made or ended. */
export function outcomeFor(
  { is, since }: Person['connection'],
  needs: readonly Part[],
  spans: readonly FaultSpan[],
  now: number,
): Expectation {
  const either = { kind: 'prompt', orServed: true } as const
  const prompt = { kind: 'prompt', orServed: false } as const
  if (is === 'unknown') return either
  if (is === 'absent')
    return now > since + SPREAD_MS && unwell(spans, MAY_DIFFER, since, now).length === 0 ? prompt : either
  const endsAt = since + MOST_CONNECTED_MS
  if (now > endsAt + END_TOLERANCE_MS) return unwell(spans, MAY_DIFFER, since, now).length === 0 ? prompt : either
  // A refresh whose response was lost ends a connection.
  return now < endsAt - END_TOLERANCE_MS && unwell(spans, needs, since, now).length === 0
    ? { kind: 'own request' }
    : either
}

/** Calls as a person, who connects the account when the proxy asks for it, and loses the connection in each way that there is. */
export async function connects(caller: Caller, person: Person, people: People): Promise<void> {
  const { around, random } = caller
  const times = random.between(4, 14)
  for (let time = 0; time < times && !around.isOver(); time += 1) {
    await callOnce(caller, person, people)
    await around.think(random.between(200, 5_000))
    if (person.connection.is === 'present' && random.between(0, 9) === 0) await end(caller, person, people)
  }
}

async function callOnce(caller: Caller, person: Person, people: People): Promise<void> {
  const { around, random } = caller
  const opensUrls = random.between(0, 1) === 0
  const tool = {
    tool: 'show_request',
    arguments: { note: random.between(0, 1_000) },
    capabilities: opensUrls ? { elicitation: { url: {} } } : {},
  }
  const expectation = expectationOf(caller, person)
  const id = nameOf(caller)
  const body = modernCall({ id, ...tool })
  const asked = await ask(caller, { id, body, expectation, isUnsafe: expectation.kind !== 'prompt' })
  if (asked.status !== 200 || asked.cut !== undefined) return
  const prompt = promptIn(asked)
  if (prompt === undefined) return
  if (opensUrls !== (prompt.state !== undefined) && expectation.kind === 'prompt' && !expectation.orServed)
    around.findings.add('served who must be refused', `${describe(caller, person)}: asked in the wrong way`)
  person.connection = { is: 'unknown', since: performance.now() }
  await open(caller, person, prompt.link, people)
  if (prompt.state === undefined || person.connection.is !== 'present') return
  const again = nameOf(caller)
  const retry = modernCall(
    { id: again, ...tool },
    { inputResponses: { connect_account: { action: 'accept' } }, requestState: prompt.state },
  )
  // The backend gets the call without what belongs to the proxy.
  const wanted: Body = { ...retry, digest: modernCall({ id: again, ...tool }).digest }
  const required = expectationOf(caller, person)
  await ask(caller, { id: again, body: wanted, expectation: required, isUnsafe: required.kind !== 'prompt' })
}

const expectationOf = ({ around, profile }: Caller, { connection }: Person): Expectation =>
  outcomeFor(connection, needsOf(profile), around.faults.spans, performance.now())

const nameOf = ({ name, random }: Caller): string => `${name}-${random.between(0, 0xffffff).toString(36)}`
const describe = ({ name }: Caller, { subject }: Person): string => `${name} as ${subject}`

/** What becomes of a link: mostly the person connects; some leave it, decline, or pass it to another person first. */
async function open(caller: Caller, person: Person, link: string, people: People): Promise<void> {
  const { around, random } = caller
  const { subject } = person
  const choice = random.between(0, 9)
  if (choice === 0) return
  if (choice <= 2) {
    const other = people.take(random)
    if (other === undefined) return
    const seen = await browse(caller, () => logIn(new Browser({}, send), link, other.subject))
    people.giveBack(other)
    if (seen !== undefined && (seen.html.includes('name="decision"') || isConnected(seen)))
      around.findings.add(
        'wrong credential',
        `${describe(caller, person)}: ${other.subject} opened the link and got ${pageOf(seen)}`,
      )
    else if (seen !== undefined && !seen.html.includes('made for somebody else') && !isOut(seen))
      unexplained(caller, `${describe(caller, person)}, ${other.subject} opening the link: ${pageOf(seen)}`)
  }
  const done = await browse(caller, async () => {
    const browser = new Browser({}, send)
    const consent = await logIn(browser, link, subject)
    if (!consent.html.includes('name="decision"')) return consent
    if (choice === 3) return browser.press(consent, 'cancel')
    const away = await follow(browser, await browser.press(consent, 'continue'))
    if (!away.html.includes('name="user"')) return away
    return follow(browser, await browser.submit(away, { user: subject }))
  })
  if (done === undefined) return
  if (isConnected(done)) {
    around.tally.add('connected')
    person.connection = { is: 'present', since: performance.now() }
  } else if (done.status === 200 && choice === 3) {
    around.tally.add('declined')
    person.connection = { is: 'absent', since: performance.now() }
  } else if (!isOut(done)) unexplained(caller, `${describe(caller, person)} connecting: ${pageOf(done)}`)
}

/** Ends the connection: by the person, by an operator, or at the workspace. */
async function end(caller: Caller, person: Person, people: People): Promise<void> {
  const { around, random } = caller
  const { subject } = person
  const before = person.connection
  person.connection = { is: 'unknown', since: performance.now() }
  const ended = (how: string): void => {
    around.tally.add(`disconnected ${how}`)
    person.connection = { is: 'absent', since: performance.now() }
  }
  const way = random.between(0, 2)
  if (way === 0) {
    people.revoke(subject)
    ended('at the workspace')
  } else if (way === 1) {
    const startedAt = performance.now()
    try {
      await people.disconnect(subject)
      ended('by an operator')
    } catch (error) {
      unexplained(caller, `${describe(caller, person)} disconnected by an operator: ${String(error)}`, startedAt)
    }
  } else {
    const page = await browse(caller, async () => {
      const browser = new Browser({}, send)
      const list = await logIn(browser, `${around.url}/connections`, subject)
      if (!list.html.includes('name="disconnect"')) return list
      return browser.submit(list, { disconnect: PROVIDER })
    })
    if (page === undefined) return
    if (page.html.includes('was disconnected')) ended('by the person')
    else if (performance.now() < before.since + MOST_CONNECTED_MS && !isOut(page))
      unexplained(caller, `${describe(caller, person)} disconnecting: ${pageOf(page)}`, before.since)
  }
}

/** Logs in as `user` at the callers' identity provider; the page after it. */
async function logIn(browser: Browser, link: string, user: string): Promise<Seen> {
  const login = await follow(browser, await browser.get(link))
  if (!login.html.includes('name="user"')) return login
  return follow(browser, await browser.submit(login, { user }))
}

async function follow(browser: Browser, seen: Seen): Promise<Seen> {
  let page = seen
  for (let step = 0; page.location !== undefined && step < 10; step += 1)
    page = await browser.get(new URL(page.location, page.url).href)
  return page
}

const send: Send = (url, init) => fetch(url, { ...init, signal: AbortSignal.timeout(PAGE_MS) })

/** The last page; undefined when a connection was lost. */
async function browse(caller: Caller, pages: () => Promise<Seen>): Promise<Seen | undefined> {
  const startedAt = performance.now()
  try {
    const seen = await pages()
    // Excused here, so that the callers compare whole pages only.
    return seen.status >= 400 && isExcused(caller, startedAt) ? undefined : seen
  } catch (error) {
    unexplained(caller, `${caller.name}: ${String((error as Error).cause ?? error)}`, startedAt)
    return undefined
  }
}

const isExcused = ({ around, profile }: Caller, from: number): boolean =>
  unwell(around.faults.spans, needsOf(profile), from, performance.now()).length > 0

function unexplained(caller: Caller, what: string, from = performance.now()): void {
  caller.around.tally.add('connecting failed')
  if (!isExcused(caller, from)) caller.around.findings.add('refused without a reason', what)
}

const isConnected = ({ status, html }: Seen): boolean => status === 200 && html.includes('is connected</h1>')

/** All browsers of a run have one address, and pages are limited by address. */
const isOut = ({ status }: Seen): boolean => status === 429

const pageOf = ({ status, html, url }: Seen): string =>
  `${status} ${/<h1>([^<]*)/.exec(html)?.[1] ?? html.slice(0, 80)} (${new URL(url).pathname.slice(0, 20)})`
