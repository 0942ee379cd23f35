import { afterEach, expect, it } from 'vitest'
import { openWay } from '../../../../src/compose/stdio/way.ts'
import { openLog } from '../../../../src/report/index.ts'
import { authConfig, configFolder, proxyConfig } from '../../../support/e2e/run.ts'

const folders: { remove(): Promise<void> }[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await folder.remove()
})

const LOG = openLog({ level: 'error', format: 'json', colors: false })

async function pagesOf(connections: object): Promise<string | undefined> {
  const folder = await configFolder({
    'own.json': authConfig('own', { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      connections: {
        singleUser: true,
        providers: [{ name: 'notes', type: 'secret', secret: { label: 'Key' } }],
        ...connections,
      },
      routes: [{ name: 'mcp', path: '/mcp', target: 'http://127.0.0.1:9/mcp', externalAuthConfigRef: { name: 'own' } }],
    }),
  })
  folders.push(folder)
  await using opened = new AsyncDisposableStack()
  const sources = { configPaths: [folder.directory] }
  return (await openWay({ kind: 'route', tokenFile: undefined, sources }, {}, LOG, opened)).pages?.origin
}

it('the pages of a route in this process are those of the proxy that serves browsers', async () => {
  expect(await pagesOf({ baseUrl: 'https://mcp.example.com' })).toBe('https://mcp.example.com')
  expect(await pagesOf({}), 'nothing listens here').toBeUndefined()
})

it('those of a URL are of its origin', async () => {
  await using opened = new AsyncDisposableStack()
  const url = new URL('https://mcp.example.com/notes')
  const way = { kind: 'url', url, caFile: undefined, tokenFile: undefined, login: undefined } as const
  expect((await openWay(way, {}, LOG, opened)).pages).toBe(url)
})
