import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { withLock } from '../../../src/files/index.ts'
import { type LoginRecord, openLoginStore, openReceiver, type Receiver } from '../../../src/login/index.ts'

let directory: string
const receivers: Receiver[] = []

beforeEach(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-parts-'))
})
afterEach(async () => {
  for (const receiver of receivers.splice(0)) receiver.close()
  await rm(directory, { recursive: true })
})

async function receiver(more: Partial<Parameters<typeof openReceiver>[0]> = {}): Promise<Receiver> {
  const opened = await openReceiver({ patienceMs: 20_000, accepts: (answer) => answer.get('state') === 's', ...more })
  receivers.push(opened)
  return opened
}

describe('the receiver of the code', () => {
  it('listens on 127.0.0.1 and nowhere else', async () => {
    const { url } = await receiver()
    const { port, pathname } = new URL(url)
    expect((await fetch(`http://127.0.0.1:${port}${pathname}`)).status).toBe(400)
    await expect(fetch(`http://127.0.0.2:${port}${pathname}`)).rejects.toThrow('fetch failed')
  })

  it('takes one answer, by GET at its own address', async () => {
    const { url, answer } = await receiver()
    expect((await fetch(`${url}?state=s&code=forged`, { method: 'POST' })).status).toBe(404)
    expect((await fetch(`${new URL('/other', url).href}?state=s&code=forged`)).status).toBe(404)
    expect((await fetch(`${url}?state=other&code=forged`)).status).toBe(400)
    const page = await fetch(`${url}?state=s&code=c`)
    expect([page.status, page.headers.get('cache-control'), page.headers.get('referrer-policy')]).toEqual([
      200,
      'no-store',
      'no-referrer',
    ])
    expect((await answer).get('code')).toBe('c')
  })

  it('stops when the last waiting request leaves', async () => {
    await expect((await receiver({ signal: AbortSignal.abort() })).answer).rejects.toThrow('was canceled')
    const ends = new AbortController()
    const { answer } = await receiver({ signal: ends.signal })
    ends.abort()
    await expect(answer).rejects.toThrow('was canceled')
  })
})

describe('the lock', () => {
  it('is given up for a signal, and is another one in another directory', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const held = withLock(directory, 'a', 20_000, () => (begun.resolve(), promise))
    await begun.promise
    const ends = new AbortController()
    const waiting = withLock(directory, 'a', 60_000, () => Promise.resolve('mine'), ends.signal)
    ends.abort()
    await expect(waiting).rejects.toMatchObject({ name: 'LockTimeout' })
    expect(await withLock(path.join(directory, 'other'), 'a', 0, () => Promise.resolve('free'))).toBe('free')
    resolve()
    await held
  })
})

const RECORD: LoginRecord = {
  version: 1,
  issuer: 'https://as.example.com',
  resource: 'https://mcp.example.com/',
  endpoint: 'https://mcp.example.com/mcp',
  client: { client_id: 'c', redirect_uri: 'http://127.0.0.1:1/callback' },
  server: { token_endpoint: 'https://as.example.com/token' },
  access_token: 'access',
}

describe('what is kept', () => {
  it('is left out where it is too large, or no login', async () => {
    const store = openLoginStore(directory)
    await store.save(RECORD)
    const files: [string, string][] = [
      ['large.json', JSON.stringify({ ...RECORD, scope: 'x'.repeat(300 * 1024) })],
      ['other.json', JSON.stringify({ endpoint: RECORD.endpoint, access_token: 'planted' })],
      ['half.json', JSON.stringify(RECORD).slice(0, 50)],
    ]
    for (const [name, text] of files) await writeFile(path.join(directory, name), text)
    expect(await store.all()).toEqual([RECORD])
  })

  it('is there whole or not at all', async () => {
    const store = openLoginStore(directory)
    await store.save(RECORD)
    const [name = ''] = await readdir(directory)
    // In the way of the file that is to take its place.
    await rm(path.join(directory, name))
    await mkdir(path.join(directory, name, 'x'), { recursive: true })
    await expect(store.save(RECORD)).rejects.toMatchObject({ syscall: 'rename' })
    expect(await readdir(directory)).toEqual([name])
  })
})
