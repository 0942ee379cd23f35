import { afterEach, expect, test, vi } from 'vitest'
import { explain, viewOf } from '../../../src/examine/explain/index.ts'
import { callerOfClaimsText } from '../../../src/examine/explain/explain-input.ts'
import { loadProxyConfig } from '../../../src/compose/load-config.ts'
import { callerWith, startRuled } from '../../support/authorize/ruled.ts'
import { cases, CONFIG, extauth, folder } from '../../support/examine/role-tests/files.ts'
import { seeded } from '../../support/seeded.ts'
import { createSockets } from '../../support/sockets.ts'

vi.setConfig({ testTimeout: 600_000 })

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const RULES = {
  default: 'deny',
  rules: [
    { name: 'frozen', priority: 1, when: 'has(claims.frozen) && claims.frozen', effect: 'deny' },
    { name: 'readers', tools: ['get_*', 'list_*'], when: '"readers" in claims.groups', effect: 'allow' },
    {
      name: 'sandbox',
      tools: ['delete_*'],
      when: 'mcp.args.repo.startsWith("s/")',
      requireScopes: ['w'],
      effect: 'allow',
    },
    { name: 'files', resources: ['file:///pub/*'], effect: 'allow' },
  ],
}

test('explain, test and the running proxy agree on 1,000 random requests', async () => {
  const draw = seeded(5)
  const pick = <T>(list: readonly T[]): T => list[draw(list.length)] as T
  const origin = await sockets.http((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  const proxy = await startRuled(sockets, origin, RULES, {
    name: 'github',
    caller: (matched) =>
      callerWith(JSON.parse(String(matched.inbound.request.headers['x-claims'])) as Record<string, unknown>),
  })
  const files = await folder({
    'proxy.yaml': CONFIG.replace(
      'externalAuthConfigRef: { name: github } }',
      `externalAuthConfigRef: { name: github }, authorization: ${JSON.stringify(RULES)} }`,
    ),
  })
  const configPaths = [`${files.directory}/proxy.yaml`]
  const { routes } = await loadProxyConfig({ configPaths }, { readsFiles: false })
  const route = routes.find(({ name }) => name === 'github')
  if (route === undefined) throw new Error('no route')
  const list: object[] = []
  for (let round = 0; round < 1000; round++) {
    const claims = {
      sub: 'ada',
      ...pick([{}, { groups: ['readers'] }, { groups: ['others'] }]),
      ...pick([{}, { scope: 'w' }, { scope: 'x' }]),
      ...pick([{}, {}, {}, { frozen: true }, { frozen: false }]),
    }
    const mcp = pick<{ method: string; name?: string; uri?: string; args?: object }>([
      {
        method: 'tools/call',
        name: pick(['get_a', 'list_b', 'delete_c', 'set_d']),
        args: pick([{}, { repo: 's/a' }, { repo: 'p/a' }]),
      },
      { method: 'resources/read', uri: pick(['file:///pub/a', 'file:///etc/a']) },
      { method: 'ping' },
    ])
    const { method, name, uri, args } = mcp
    const response = await proxy.rpc(method, { name, uri, arguments: args }, { 'x-claims': JSON.stringify(claims) })
    const allowed = response.status === 200
    const report = explain(route, callerOfClaimsText(JSON.stringify(claims), 'this'), 0, {
      all: false,
      request: viewOf(mcp),
    })
    expect([claims, mcp, report.request?.rules?.allowed ?? true]).toEqual([claims, mcp, allowed])
    const rule = report.request?.rules?.rule ?? 'default'
    list.push({ route: 'github', claims, mcp, expect: { allowed, rule } })
  }
  const { out, code } = await extauth([
    'test',
    await files.write('cases.json', cases(...list)),
    '--config',
    ...configPaths,
  ])
  expect(out).toContain('1000 passed, 0 failed')
  expect(code).toBe(0)
  await files.remove()
})
