import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { loadProxyConfig } from '../../../src/compose/load-config.ts'
import { parseObjects } from '../../../src/load/index.ts'
import { once } from '../../../src/fields/index.ts'
import { upstreamProvider } from '../../../src/resources/upstream/upstream-provider.ts'

type Members = Record<string, unknown>

const schema = once(upstreamProvider)
const directory = mkdtempSync(path.join(os.tmpdir(), 'extauth-providers-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const objectsIn = (text: string): Members[] =>
  parseAllDocuments(text).map((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0]
    return document.toJS() as Members
  })

/** Problems of the first config of a page with another client authentication. */
function problemsWith(text: string, clientAuth: unknown): readonly string[] {
  const config = objectsIn(text).find(({ kind }) => kind === 'MCPExternalAuthConfig') ?? {}
  const { type, ...rest } = config['spec'] as { type: string } & Record<string, Members>
  const spec = Object.fromEntries(
    Object.entries(rest[type] ?? {}).filter(([field]) => !['clientId', 'clientSecretRef'].includes(field)),
  )
  const object = { ...config, spec: { type, [type]: { ...spec, clientAuth } } }
  return parseObjects([object]).problems.map((problem) => `${problem.path}  ${problem.message}`)
}

describe.each([
  ['auth0.md', { whole: 1, alone: 0, clients: 0, json: 0 }],
  ['google.md', { whole: 1, alone: 0, clients: 0, json: 0 }],
  ['github.md', { whole: 1, alone: 0, clients: 0, json: 0 }],
  ['atlassian.md', { whole: 1, alone: 0, clients: 0, json: 0 }],
  ['slack.md', { whole: 1, alone: 0, clients: 0, json: 0 }],
  ['entra.md', { whole: 1, alone: 0, clients: 2, json: 0 }],
  ['okta.md', { whole: 2, alone: 1, clients: 1, json: 0 }],
  ['keycloak.md', { whole: 1, alone: 1, clients: 4, json: 11 }],
])('docs/%s', (name, count) => {
  const page = readFileSync(path.join(import.meta.dirname, '../../../docs', name), 'utf8')
  const blocks = (language: string) =>
    [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text = '']) => text)
  const yaml = blocks('yaml')
  const upstreams = yaml.filter((text) => text.startsWith('upstreamProviders:'))
  const whole = yaml.filter((text) => text.includes('kind: ProxyConfig'))
  const clients = yaml.filter((text) => text.startsWith('clientAuth:'))
  const alone = yaml.filter((text) => ![whole, clients, upstreams].some((those) => those.includes(text)))

  it('has as many examples as are looked at here', () => {
    expect({ whole: whole.length, alone: alone.length, clients: clients.length, json: blocks('json').length }).toEqual(
      count,
    )
  })

  it.each(whole)('has a configuration that runs, without a warning: %s', async (text) => {
    const file = path.join(directory, `${name}.yaml`)
    writeFileSync(file, text)
    const { warnings, routes } = await loadProxyConfig({ configPaths: [file] }, { readsFiles: false })
    expect(warnings).toEqual([])
    expect(routes).toHaveLength(1)
  })

  it.each(alone)('has a config that is right: %s', (text) => {
    expect(parseObjects(objectsIn(text)).problems).toEqual([])
  })

  it.each(upstreams)('has an upstream that is right: %s', (text) => {
    const { upstreamProviders } = parse(text) as { upstreamProviders: unknown[] }
    for (const upstream of upstreamProviders) expect(() => schema().parse(upstream)).not.toThrow()
  })

  it.each(clients)('has a client that fits into the page’s config: %s', (text) => {
    expect(problemsWith(whole[0] ?? '', (parse(text) as Members)['clientAuth'])).toEqual([])
  })

  it.each(blocks('json'))('has JSON that can be read: %s', (text) => {
    expect(() => JSON.parse(text) as unknown).not.toThrow()
  })
})
