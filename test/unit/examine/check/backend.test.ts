import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ANONYMOUS,
  type Answer,
  type Answering,
  documents,
  type Folder,
  mcp,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

let folder: Folder
const open: Site[] = []
beforeAll(async () => {
  folder = await openFolder()
  await folder.write('secrets/backend/token', 'sesame\n')
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const BEARER = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'backend', key: 'token' } } }

/** The result of a check of a backend, and its requests: HTTP method, and the JSON-RPC method if any. */
async function check(answering: (asked: string, request: Parameters<Answering>[0]) => Answer, query = '') {
  const asked: string[] = []
  const made = await site({
    '/mcp': (request, body) => {
      const { method } = (body === '' ? {} : JSON.parse(body)) as { method?: string }
      const name = method ?? request.method ?? ''
      asked.push(name)
      return answering(name, request)
    },
  })
  open.push(made)
  await folder.write('proxy.yaml', documents({ target: `${made.url}/mcp${query}` }, BEARER, { auth: ANONYMOUS }))
  const { checks, out } = await folder.check()
  return { asked, out, line: checks.find((each) => each.check === 'mcp') }
}

describe('extauth check at a backend', () => {
  it('closes the session that it opened, with the credential', async () => {
    const closed: unknown[] = []
    const { asked, line } = await check((name, request) => {
      if (name === 'DELETE') closed.push([request.headers['mcp-session-id'], request.headers.authorization])
      return { ...mcp()(request, ''), headers: { 'mcp-session-id': 's-1' } }
    })
    expect(line?.status).toBe('ok')
    expect(asked).toEqual(['initialize', 'DELETE'])
    expect(closed).toEqual([['s-1', 'Bearer sesame']])
  })

  it('asks once where the credential is refused', async () => {
    const { asked, line } = await check(() => ({ status: 401 }))
    expect(line).toMatchObject({ status: 'failed', detail: 'the backend rejects the credential: status 401' })
    expect(asked).toEqual(['initialize'])
  })

  it('hears a refusal of the second question too', async () => {
    const { asked, line } = await check((name) => ({ status: name === 'initialize' ? 400 : 403 }))
    expect(line).toMatchObject({ status: 'failed', detail: 'the backend rejects the credential: status 403' })
    expect(asked).toEqual(['initialize', 'server/discover'])
  })

  it('takes no result from an error', async () => {
    const { line } = await check((_, request) => ({ ...mcp()(request, ''), status: 500 }))
    expect(line).toMatchObject({ status: 'failed', detail: expect.stringContaining('status 500') as string })
  })

  it('reads an answer up to a bound', async () => {
    const { line } = await check(() => ({ body: ' '.repeat(5 * 1024 * 1024) }))
    expect(line).toMatchObject({ status: 'failed', detail: expect.stringContaining('too_large') as string })
  })

  it('hides the query of the target, which may hold a key', async () => {
    const { line, out } = await check(() => ({ status: 404 }), '?key=hidden')
    expect(line?.status).toBe('failed')
    expect(out).not.toContain('hidden')
  })
})
