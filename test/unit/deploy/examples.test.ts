import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadProxyConfig } from '../../../src/compose/load-config.ts'

const EXAMPLES = path.join(import.meta.dirname, '../../../config/examples')
const README = readFileSync(path.join(EXAMPLES, 'README.md'), 'utf8')
const FILES = readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml') && name !== 'callers.yaml')

const load = (file: string) =>
  loadProxyConfig(
    {
      configPaths: [path.join(EXAMPLES, file)],
      ...(file === 'remote-proxy.yaml' ? { callers: path.join(EXAMPLES, 'callers.yaml') } : {}),
    },
    { readsFiles: false },
  )

describe('config/examples', () => {
  it.each(FILES)('%s runs as it is, without a warning', async (file) => {
    const config = await load(file)
    expect(config.warnings).toEqual([])
    expect(config.routes.length).toBeGreaterThan(0)
  })

  it('are all in the README beside them', () => {
    const listed = [...README.matchAll(/^\| `([^`]+)`/gm)].map((match) => match[1])
    expect(new Set(listed)).toEqual(new Set(FILES))
  })

  it.each([
    ['github-bearer.yaml', ['bearerToken']],
    ['api-key.yaml', ['headerInjection']],
    ['exchange-keycloak.yaml', ['tokenExchange']],
    ['exchange-okta.yaml', ['tokenExchange']],
    ['exchange-entra.yaml', ['tokenExchange']],
    ['bedrock-agentcore.yaml', ['cloudSts']],
    ['contractors.yaml', ['headerInjection']],
    ['aws-roles-per-tool.yaml', ['cloudSts']],
    ['service-accounts.yaml', ['bearerToken']],
    ['several-providers.yaml', ['unauthenticated', 'headerInjection']],
    ['remote-proxy.yaml', ['headerInjection']],
  ])('%s shows %j', async (file, types) => {
    expect((await load(file)).routes.map((route) => route.auth.type)).toEqual(types)
  })

  it('only the one on loopback for one person serves anonymous callers', async () => {
    const modes = await Promise.all(
      FILES.map(async (file) => [file, (await load(file)).routes.some(({ callers }) => callers.mode === 'anonymous')]),
    )
    expect(modes.filter(([, isOpen]) => isOpen)).toEqual([['github-bearer.yaml', true]])
  })

  it('the roles of Bedrock AgentCore are tried in the order of their priority, and the target keeps its encoded ARN', async () => {
    const [route] = (await load('bedrock-agentcore.yaml')).routes
    expect(route?.target.path).toContain('/runtimes/arn%3Aaws%3Abedrock-agentcore%3A')
    expect(route?.auth.spec).toMatchObject({
      service: 'bedrock-agentcore',
      roleMappings: [{ priority: 10 }, { priority: 20 }, { priority: 30 }],
    })
  })
})
