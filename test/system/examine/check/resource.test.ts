import type { RequestListener, ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { freePort, run } from '../../../support/e2e/run.ts'
import {
  documents,
  type Folder,
  identityProvider,
  mcp,
  oauth,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

const sockets = createSockets()
let [idp, backend]: Site[] = []
let folder: Folder
beforeAll(async () => {
  idp = await identityProvider()
  backend = await site({ '/mcp': mcp() })
})
afterAll(() => Promise.all([idp?.close(), backend?.close()]))
beforeEach(async () => {
  folder = await openFolder()
})
afterEach(async () => {
  await sockets.closeAll()
  await folder.remove()
})

/** A configuration at this port whose route is at /r, for clients that connect to `resourceUrl`. */
const configured = (port: number, resourceUrl: string): string =>
  documents(
    { path: '/r', target: `${backend?.url}/mcp`, resourceUrl },
    { type: 'unauthenticated' },
    { listen: { address: `127.0.0.1:${port}` }, auth: oauth(idp?.url ?? '') },
  )

/** Runs the proxy of a configuration at its port. */
async function proxyOf(port: number, resourceUrl: string): Promise<void> {
  sockets.closing(await run({ 'proxy.yaml': configured(port, resourceUrl) }, { listen: `127.0.0.1:${port}` }))
}

/** The result of `check` for the resource. */
async function checked(port: number, resourceUrl: string) {
  await folder.write('proxy.yaml', configured(port, resourceUrl))
  const { checks, code } = await folder.check()
  const lines = checks.filter(({ check }) => check === 'resource')
  expect(lines).toHaveLength(1)
  const { status, detail, subject } = lines[0] ?? {}
  return { status, detail, subject, code }
}

describe('where clients connect to', () => {
  it('is right where challenge and document name it', async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/r`
    await proxyOf(port, url)
    expect(await checked(port, url)).toEqual({
      status: 'ok',
      detail: 'challenge and document match',
      subject: url,
      code: 0,
    })
  })

  it('is wrong where the proxy that runs has no such route', async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/other`
    await proxyOf(port, url)
    expect(await checked(port, url)).toMatchObject({
      status: 'failed',
      detail: 'status 404; expected 401, since the route requires a token',
      code: 1,
    })
  })

  it('may be wrong if nothing answers although the proxy runs', async () => {
    const [port, other] = await Promise.all([freePort(), freePort()])
    const url = `http://127.0.0.1:${other}/r`
    await proxyOf(port, url)
    const found = await checked(port, url)
    expect(found).toMatchObject({ status: 'warning', code: 0 })
    expect(found.detail).toContain(
      'unreachable from this machine: connection refused: no server listens at this host and port',
    )
  })

  it('is not checked while the proxy does not run', async () => {
    const port = await freePort()
    expect(await checked(port, `http://127.0.0.1:${port}/r`)).toMatchObject({ status: 'skipped', code: 0 })
  })

  it('is no failure where another configuration runs', async () => {
    const port = await freePort()
    await proxyOf(port, `http://127.0.0.1:${port}/before`)
    const found = await checked(port, `http://127.0.0.1:${port}/r`)
    expect(found).toMatchObject({ status: 'warning', code: 0 })
    expect(found.detail).toMatch(/is http:.*\/before; .*or a different configuration runs there/)
  })

  async function handOn(url: string, method: string, response: ServerResponse): Promise<void> {
    const answer = await fetch(url, { method })
    const challenge = answer.headers.get('www-authenticate')
    const headers = challenge === null ? {} : { 'www-authenticate': challenge }
    response.writeHead(answer.status, headers).end(await answer.text())
  }
  /** Something in front of the proxy that hands everything on but what `change` answers. */
  async function inFront(port: number, change: RequestListener): Promise<string> {
    const origin = await sockets.http((request, response) => {
      change(request, response)
      if (response.writableEnded) return
      void handOn(`http://127.0.0.1:${port}${request.url}`, request.method ?? 'GET', response)
    })
    return `${origin}/r`
  }
  it.each<[string, RequestListener, string, RegExp]>([
    ['is fine', () => undefined, 'ok', /challenge and document match/],
    [
      'keeps the document',
      ({ url }, response) => void (url?.startsWith('/.well-known') === true && response.writeHead(404).end()),
      'failed',
      /: status 404; expected 200/,
    ],
    [
      'has a document of its own',
      ({ url }, response) =>
        void (
          url?.startsWith('/.well-known') === true && response.end('{"resource":"https://other.example/x?secret"}')
        ),
      'failed',
      /has the resource https:\/\/other\.example\/x; expected this URL$/,
    ],
    [
      'asks for a token itself',
      (_request, response) => void response.writeHead(401, { 'www-authenticate': 'Bearer realm="gateway"' }).end(),
      'failed',
      /resource_metadata of the challenge is no document/,
    ],
    ['is broken', (_request, response) => void response.writeHead(502).end(), 'warning', /status 502/],
  ])('by way of something in front that %s', async (_what, change, status, detail) => {
    const port = await freePort()
    const url = await inFront(port, change)
    await proxyOf(port, url)
    const found = await checked(port, url)
    expect(found.status).toBe(status)
    expect(found.detail).toMatch(detail)
  })
})
