import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ANONYMOUS,
  type Answering,
  documents,
  type Folder,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

const PAGES = [['get_file', 'list_files'], ['delete_repo'], ['']] as const

interface Message {
  readonly id?: number
  readonly method: string
  readonly params?: { readonly cursor?: string; readonly _meta?: object }
}

const result = (id: number | undefined, content: object) => ({ body: { jsonrpc: '2.0', id, result: content } })
const listed = (page: number) => ({
  tools: (PAGES[page] ?? []).map((name) => ({ name, inputSchema: { type: 'object' } })),
  ...(page + 1 < PAGES.length ? { nextCursor: String(page + 1) } : {}),
})

let folder: Folder
const open: Site[] = []
/** Requests of one server, in order. */
let seen: string[]

async function serve(answering: Answering): Promise<string> {
  const made = await site({ '/mcp': answering })
  open.push(made)
  return `${made.url}/mcp`
}

/** A server that requires its session, the negotiated version and the notification. */
function stateful(list: (page: number) => ReturnType<Answering> = (page) => result(1, listed(page))): Answering {
  let isReady = false
  return ({ method, headers }, body) => {
    seen.push(method === 'DELETE' ? 'DELETE' : (JSON.parse(body) as Message).method)
    if (method === 'POST' && (JSON.parse(body) as Message).method === 'initialize')
      return {
        headers: { 'mcp-session-id': 's1' },
        ...result(1, { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'mock', version: '1' } }),
      }
    if (headers['mcp-session-id'] !== 's1' || headers['mcp-protocol-version'] !== '2025-06-18') return { status: 400 }
    if (method === 'DELETE') return { status: 204 }
    const message = JSON.parse(body) as Message
    if (message.method === 'notifications/initialized') {
      isReady = true
      return { status: 202, body: '' }
    }
    if (message.method !== 'tools/list' || !isReady) return { status: 400 }
    return list(Number(message.params?.cursor ?? 0))
  }
}

const stateless: Answering = ({ headers }, body) => {
  const { method, params } = JSON.parse(body) as Message
  seen.push(method)
  if (headers['mcp-method'] !== method || params?._meta === undefined)
    return { status: 400, body: { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no' } } }
  return method === 'server/discover'
    ? result(1, { supportedVersions: ['2026-07-28'] })
    : result(1, listed(Number(params.cursor ?? 0)))
}

beforeAll(async () => {
  folder = await openFolder()
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const rules = (...tools: readonly (readonly string[])[]) => ({
  authorization: {
    default: 'deny',
    rules: tools.map((names, index) => ({ name: `r${index}`, tools: names, effect: 'allow' })),
  },
})

async function checked(route: object, auth: object = { type: 'unauthenticated' }) {
  seen = []
  await folder.write('proxy.yaml', documents(route, auth, { auth: ANONYMOUS }))
  const { checks, code } = await folder.check()
  return { code, tools: checks.filter(({ check }) => check === 'tools') }
}

describe('extauth check lists the tools of a backend for the patterns of its route', () => {
  it.each([
    ['with a session', () => stateful()],
    ['without sessions', () => stateless],
  ])('%s', async (_, made) => {
    const target = await serve(made())
    const fine = await checked({ target, ...rules(['get_*', 'delete_repo'], ['*']) })
    expect(fine).toMatchObject({
      code: 0,
      tools: [{ status: 'ok', detail: 'each pattern matches one of the 4 tools that the backend lists' }],
    })
    const { code, tools } = await checked({ target, ...rules(['get_*'], ['remove_*', 'delete_rep', 'list_files']) })
    expect(tools).toEqual([
      {
        check: 'tools',
        subject: 'rule "r1"',
        status: 'warning',
        detail: '"remove_*", "delete_rep" match none of the 4 tools that the backend lists',
        remedy:
          'Correct or remove the pattern; a similar name is "delete_repo". The list may differ with another credential.',
      },
    ])
    expect(code).toBe(0)
  })

  it('initializes the session first and ends it afterwards', async () => {
    await checked({ target: await serve(stateful()), ...rules(['get_*']) })
    expect(seen).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/list',
      'tools/list',
      'tools/list',
      'DELETE',
    ])
  })

  it('lists nothing for a route that names no tools', async () => {
    const { tools } = await checked({
      target: await serve(stateful()),
      authorization: { default: 'deny', rules: [{ name: 'r', methods: ['x/*'], effect: 'allow' }] },
    })
    expect(tools).toEqual([])
    expect(seen).toEqual(['initialize', 'DELETE'])
  })

  it('knows the patterns of credentials', async () => {
    const credentials = [{ tools: ['drop_*'], externalAuthConfigRef: { name: 'a' } }]
    const { tools } = await checked({ target: await serve(stateful()), credentials })
    expect(tools).toMatchObject([{ status: 'warning', subject: 'credentials[0]' }])
  })

  it.each([
    [
      'a JSON-RPC error',
      () => ({ body: { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'no' } } }),
      /tools\/list returns the JSON-RPC error -32601$/,
    ],
    ['a refusal', () => ({ status: 403 }), /no JSON-RPC response to tools\/list$/],
    ['a result that is no list', () => result(1, {}), /the response to tools\/list lacks tools$/],
    ['no response', () => ({ cut: true }), /no response to tools\/list \(unreachable\)$/],
    ['a list without an end', () => result(1, { tools: [], nextCursor: 'more' }), /100 pages/],
  ])('says "not tested" after %s', async (_, list, detail) => {
    const { code, tools } = await checked({ target: await serve(stateful(list)), ...rules(['get_*']) })
    expect(tools).toMatchObject([{ status: 'skipped', detail: expect.stringMatching(/^not tested: /) as string }])
    expect(tools[0]?.detail).toMatch(detail)
    expect(seen.at(-1)).toBe('DELETE')
    expect(code).toBe(0)
  })

  it('says "not tested" without a credential', async () => {
    const auth = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'missing', key: 'token' } } }
    const { tools } = await checked({ target: await serve(stateful()), ...rules(['get_*']) }, auth)
    expect(tools).toMatchObject([{ status: 'skipped', detail: 'not tested: no credential' }])
    expect(seen).toEqual([])
  })
})
