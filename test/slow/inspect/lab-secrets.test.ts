import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { logInAtRoute } from '../../../lab/cli/lab-login.ts'
import { labConfig } from '../../../src/cli/index.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { callTool, valuesOf } from '../../support/lab/proxied.ts'
import { ask, finished, listen, shown } from '../../support/inspect/page-client.ts'

const ROUTES = [
  'unauthenticated',
  'header-injection',
  'bearer-token',
  'client-credentials',
  'obo',
  'token-exchange',
  'cloud-sts',
  'upstream',
  'upstream-exchange',
  'xaa',
]
/** Sensitive values that a caller may send, each with its own marker. */
const MARKED = {
  cookie: 'session=MARKED-COOKIE-0001; theme=MARKED-COOKIE-0002',
  'proxy-authorization': 'Basic TUFSS0VEOk1BUktFRC1QUk9YWS0wMDAz',
  'x-api-key': 'MARKED-KEY-0004',
  'x-amz-security-token': 'MARKED-AMZ-0005',
  'x-forwarded-access-token': 'MARKED-FORWARDED-0006',
  'x-custom-token': 'MARKED-CUSTOM-0007',
}
const MARKS = ['MARKED-', 'TUFSS0VEOk1BUktFRC1QUk9YWS0wMDAz']

let lab: TestLab
let inspector: string
const secrets = new Set<string>(MARKS)
beforeAll(async () => {
  lab = await openLab()
  inspector = lab.inspectUrl ?? ''
  const folder = path.join(labConfig(), 'secrets')
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (file.isFile() && !file.name.endsWith('.crt'))
      secrets.add(readFileSync(path.join(file.parentPath, file.name), 'utf8').trim())
}, 30_000)
afterAll(() => lab.close())

const tokenFor = async (route: string): Promise<string | undefined> => {
  if (route === 'unauthenticated' || route === 'header-injection') return undefined
  if (route.startsWith('upstream') || route === 'xaa') return logInAtRoute(lab.url, `/${route}`, 'alice')
  return lab.token({ sub: 'alice', groups: ['admins'] })
}

/** The credentials in the head that reached the backend. */
function credentialsIn(headers: readonly string[]): string[] {
  const own = ['authorization', 'x-amz-security-token', 'x-api-key'].flatMap((name) => valuesOf(headers, name))
  const ids = own.map((value) => /Credential=([^/]+)/.exec(value)?.[1] ?? '')
  return [...own.map((value) => value.replace(/^Bearer /, '').replace(/^AWS4.*Signature=/, '')), ...ids]
}

describe('what the page receives', () => {
  it('has no secret of any type, in list, events, details, configuration, cache and overview', async () => {
    const events = await listen(inspector, '/api/events')
    for (const route of ROUTES) {
      const token = await tokenFor(route)
      if (token !== undefined) secrets.add(token).add(token.slice(token.lastIndexOf('.') + 1))
      const headers = { ...MARKED, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }
      // The tool answers with the request that reached it, credentials included.
      const { status, seen } = await callTool(lab, `/${route}?note=plain&api_key=MARKED-QUERY-0008`, headers)
      expect([route, status]).toEqual([route, 200])
      for (const credential of credentialsIn(seen?.headers ?? [])) secrets.add(credential)
      const refused = await callTool(lab, `/${route}?access_token=MARKED-QUERY-0009`, headers)
      expect(refused.status).toBe(400)
    }
    const unknown = await callTool(lab, '/nowhere?code=MARKED-QUERY-0010', MARKED)
    expect(unknown.status).toBe(404)
    expect(secrets.size).toBeGreaterThan(20)

    const requests = await vi.waitFor(async () => {
      const list = await finished(inspector)
      expect(list.filter(({ rpcName }) => rpcName === 'show_request')).toHaveLength(2 * ROUTES.length + 1)
      return list
    })
    const received = [JSON.stringify(requests)]
    for (const { id } of requests) received.push(JSON.stringify(await shown(inspector, id)))
    for (const name of ['state', 'overview', 'cache', 'config'])
      received.push(JSON.stringify(await ask(inspector, `/api/${name}`)))
    await vi.waitFor(() => expect(events.text()).toContain('event: batch'))
    events.stop()
    received.push(events.text())
    const text = received.join('\n')
    expect(text.length).toBeGreaterThan(50_000)
    const found = [...secrets].filter((secret) => secret.length > 5 && text.includes(secret))
    expect(found).toEqual([])
    // Claims are not asked for: the subject is nowhere but in bodies, which are whatever the backend says.
    for (const { id } of requests) {
      const { requestBody: _request, responseBody: _response, ...head } = await shown(inspector, id)
      expect(JSON.stringify(head)).not.toMatch(/alice|admins"\]/)
    }
  }, 60_000)

  it('has the way of each request: who, with what, what was added, removed and replaced', async () => {
    const requests = await finished(inspector)
    for (const route of ROUTES) {
      const { id } = requests.find((one) => one.route === route && one.status === 200) ?? { id: '' }
      const { attempts, received, answer, timeline, caller } = await shown(inspector, id)
      const sent = attempts[0]?.sent
      const marks = new Map(sent?.headers.map(({ name, mark }) => [name, mark]))
      expect([route, marks.get('content-type'), marks.get('via'), marks.get('host')]).toEqual([
        route,
        'same',
        'added',
        'replaced',
      ])
      expect(sent?.removed).toEqual(expect.arrayContaining(['cookie', 'proxy-authorization']))
      expect(received.dropped).toContainEqual({ name: 'cookie', rule: 'caller_credential' })
      expect(answer.fromBackend?.status).toBe(200)
      expect(answer.dropped.map(({ rule }) => rule)).toContain('hop_by_hop')
      expect(timeline.map(({ name }) => name)).toEqual(
        'waiting caller body credential connect first_byte answer'.split(' '),
      )
      const isKnown = route !== 'unauthenticated' && route !== 'header-injection'
      expect([route, caller?.kind]).toEqual([route, isKnown ? 'authenticated' : 'anonymous'])
      const injected = { 'header-injection': 'x-api-key', unauthenticated: '' }[route] ?? 'authorization'
      if (injected !== '') {
        expect([route, marks.get(injected)]).toEqual([route, 'replaced'])
        expect(sent?.headers.find(({ name }) => name === injected)?.value).toContain('[masked]')
      }
      expect(attempts[0]?.lookup.from).toBe(
        ['client-credentials', 'token-exchange', 'obo', 'cloud-sts', 'upstream-exchange', 'xaa'].includes(route)
          ? 'service'
          : 'config',
      )
    }
    const signed = requests.find((one) => one.route === 'cloud-sts' && one.status === 200)
    const { attempts, decision } = await shown(inspector, signed?.id ?? '')
    expect(attempts[0]?.sent?.signing?.canonicalRequest).toContain('x-amz-security-token:[masked]')
    expect(attempts[0]?.sent?.signing?.stringToSign).toMatch(/^AWS4-HMAC-SHA256\n\d{8}T\d{6}Z\n/)
    expect(decision).toMatchObject({ choice: { by: 'mapping', steps: [{ outcome: 'matched', rule: 'admins' }, {}] } })
  })
})

describe('with --show-claims', () => {
  it('the page receives who asked, under which session name, and the claims', async () => {
    const open = await openLab({ showClaims: true })
    try {
      const url = open.inspectUrl ?? ''
      const authorization = `Bearer ${await open.token({ sub: 'alice', groups: ['admins'] })}`
      await callTool(open, '/cloud-sts', { authorization })
      const [request] = await vi.waitFor(async () => {
        const list = await finished(url)
        expect(list).toHaveLength(1)
        return list
      })
      expect(request?.subject).toBe('alice')
      const { caller, decision } = await shown(url, request?.id ?? '')
      expect(caller).toMatchObject({ subject: 'alice', claims: { groups: ['admins'] } })
      expect(decision).toMatchObject({ session: { name: 'alice' } })
    } finally {
      await open.close()
    }
  }, 30_000)
})
