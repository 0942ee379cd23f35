import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { Failure, Secret } from '../../../src/core/index.ts'
import type { Ops, OpsHandler } from '../../../src/ops/index.ts'
import { send, start } from '../../support/ops/start.ts'

const LOCAL = { host: 'localhost:8081' }
let ops: Ops | undefined
afterEach(async () => {
  await ops?.close()
  ops = undefined
})

const endpoints: Record<string, OpsHandler> = {
  'GET /config': () => ({ status: 200, json: { effective: true } }),
  'GET /decisions': ({ query }) => ({ status: 200, json: query.getAll('sub') }),
  'DELETE /decisions': () => ({ status: 204 }),
  'POST /reload': ({ method, body }) => ({ status: 200, json: { method, body } }),
}

describe('guarded endpoints on a loopback bind', () => {
  it.each(['localhost', 'localhost:8081', '127.0.0.1:1', '[::1]:8081', 'LOCALHOST'])('serve Host %s', async (host) => {
    ops = await start({ guarded: { endpoints } })
    expect(await send(ops.url, '/config', { headers: { host } })).toMatchObject({
      status: 200,
      text: '{"effective":true}',
    })
  })

  it.each([
    ['a rebound name', { host: 'evil.example' }],
    ['a name that begins like ours', { host: 'localhost.evil.example' }],
    ['an address that is not loopback', { host: '10.0.0.1:8081' }],
    ['a page of another origin', { ...LOCAL, origin: 'https://evil.example' }],
    ['a page of our own origin', { ...LOCAL, origin: 'http://localhost:8081' }],
    ['a cross-site fetch', { ...LOCAL, 'sec-fetch-site': 'cross-site' }],
  ])('refuse %s with 403', async (_, headers) => {
    ops = await start({ guarded: { endpoints } })
    for (const [method, path] of [['GET', '/config'] as const, ['POST', '/reload'] as const]) {
      expect(await send(ops.url, path, { method, headers })).toMatchObject({ status: 403 })
    }
  })

  it('give the handler method, query and JSON body, and send what it says', async () => {
    ops = await start({ guarded: { endpoints } })
    const got = await send(ops.url, '/decisions?sub=a&sub=b', { headers: LOCAL })
    expect(got.text).toBe('["a","b"]')
    expect(await send(ops.url, '/decisions', { method: 'DELETE', headers: LOCAL })).toMatchObject({
      status: 204,
      text: '',
    })
    const headers = { ...LOCAL, 'content-type': 'application/json' }
    const posted = await send(ops.url, '/reload', { method: 'POST', headers, body: '{"a":1}' })
    expect(JSON.parse(posted.text)).toEqual({ method: 'POST', body: { a: 1 } })
    const bare = await send(ops.url, '/reload', { method: 'POST', headers: LOCAL })
    expect(JSON.parse(bare.text)).toEqual({ method: 'POST' })
  })

  it.each([
    ['not JSON', '{', 'application/json', 400],
    ['another content type', '{}', 'text/plain', 400],
    ['more than 64 KiB', JSON.stringify('x'.repeat(70_000)), 'application/json', 413],
  ])('refuse a body that is %s', async (_, body, type, status) => {
    ops = await start({ guarded: { endpoints } })
    const headers = { ...LOCAL, 'content-type': type }
    expect(await send(ops.url, '/reload', { method: 'POST', headers, body })).toMatchObject({ status })
  })

  it('answer HEAD where there is GET, and 405 with Allow for the rest', async () => {
    ops = await start({ guarded: { endpoints } })
    expect(await send(ops.url, '/config', { method: 'HEAD', headers: LOCAL })).toMatchObject({ status: 200, text: '' })
    const got = await send(ops.url, '/decisions', { method: 'PUT', headers: LOCAL })
    expect([got.status, got.headers['allow']]).toEqual([405, 'GET, HEAD, DELETE'])
  })

  it('turn what a handler throws into the answer of the error table, without its text', async () => {
    const boom: OpsHandler = () => {
      throw new Error('token=abc')
    }
    const known: OpsHandler = () => Promise.reject(new Failure('bad_request'))
    ops = await start({ guarded: { endpoints: { 'GET /boom': boom, 'GET /known': known } } })
    const got = await send(ops.url, '/boom', { headers: LOCAL })
    expect(got.status).toBe(500)
    expect(got.text).not.toContain('abc')
    expect(await send(ops.url, '/known', { headers: LOCAL })).toMatchObject({ status: 400 })
  })
})

describe('guarded endpoints with a token', () => {
  const bearer = (token: string) => ({ host: 'admin.example', authorization: `Bearer ${token}` })

  it('are served under any name with the right bearer, from any bind', async () => {
    ops = await start({ address: ':0', guarded: { endpoints, token: () => new Secret('s3cret') } })
    expect(await send(ops.url, '/config', { headers: bearer('s3cret') })).toMatchObject({ status: 200 })
  })

  it('answer 401 with a challenge without it, even on a loopback name when the bind is open', async () => {
    ops = await start({ address: ':0', guarded: { endpoints, token: () => new Secret('s3cret') } })
    const none = await send(ops.url, '/config', { headers: LOCAL })
    expect([none.status, none.headers['www-authenticate']]).toEqual([401, 'Bearer realm="extauth-admin"'])
    const wrong = await send(ops.url, '/config', { headers: bearer('s3cre') })
    expect(wrong.status).toBe(401)
    expect(wrong.headers['www-authenticate']).toContain('error="invalid_token"')
  })

  it('reject all requests on an open bind while the token file cannot be read', async () => {
    ops = await start({ address: ':0', guarded: { endpoints, token: () => undefined } })
    expect(await send(ops.url, '/config', { headers: bearer('undefined') })).toMatchObject({ status: 401 })
  })

  it('take a new token at once', async () => {
    let token = 'one'
    ops = await start({ address: ':0', guarded: { endpoints, token: () => new Secret(token) } })
    token = 'two'
    expect(await send(ops.url, '/config', { headers: bearer('one') })).toMatchObject({ status: 401 })
    expect(await send(ops.url, '/config', { headers: bearer('two') })).toMatchObject({ status: 200 })
  })

  it('do not exist on an open bind without a token', async () => {
    ops = await start({ address: ':0', guarded: { endpoints } })
    expect(await send(ops.url, '/config', { headers: LOCAL })).toMatchObject({ status: 404 })
    expect(await send(ops.url, '/health', { headers: LOCAL })).toMatchObject({ status: 200 })
  })
})

describe('the admin listener on a Unix socket', () => {
  it('serves guarded endpoints to the owner of the socket only', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ops-'))
    const socketPath = join(directory, 'admin.sock')
    ops = await start({ address: `unix:${socketPath}`, guarded: { endpoints } })
    expect(ops.url).toBe(`unix:${socketPath}`)
    expect(statSync(socketPath).mode & 0o777).toBe(0o600)
    expect(await send({ socketPath }, '/config', { headers: LOCAL })).toMatchObject({ status: 200 })
    expect(await send({ socketPath }, '/config', { headers: { host: 'evil.example' } })).toMatchObject({ status: 403 })
    rmSync(directory, { recursive: true })
  })
})

describe('a Unix socket that is there already', () => {
  it('is reused after a dead process, and left to a living one', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ops-'))
    const socketPath = join(directory, 'admin.sock')
    const kill = `require('node:net').createServer().listen(${JSON.stringify(socketPath)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', kill])
    expect(statSync(socketPath).isSocket()).toBe(true)
    ops = await start({ address: `unix:${socketPath}`, guarded: { endpoints } })
    expect(await send({ socketPath }, '/health', { headers: LOCAL })).toMatchObject({ status: 200 })
    await expect(start({ address: `unix:${socketPath}` })).rejects.toThrow('another process listens')
    expect(await send({ socketPath }, '/health', { headers: LOCAL })).toMatchObject({ status: 200 })
    rmSync(directory, { recursive: true })
  })
})

describe('startOps', () => {
  it.each(['/config', 'GET config', 'GET /a b', ''])('refuses the endpoint key %j', async (key) => {
    await expect(start({ guarded: { endpoints: { [key]: () => ({ status: 200 }) } } })).rejects.toThrow(TypeError)
  })
})
