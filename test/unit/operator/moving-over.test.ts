import { afterEach, describe, expect, test } from 'vitest'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionOf, object, statusOf } from '../../support/operator/objects.ts'
import { inlineProvider } from '../../support/operator/shared-configs.ts'
import { closeAll, type Closers, operate, startController } from '../../support/operator/start-controller.ts'
import type { KubeObject } from '../../../src/kube/index.ts'
import { parseObjects, resolveProxy } from '../../../src/load/index.ts'

// Manifests of the group that these kinds come from, applied with no change but the group.
const closers: Closers = []
afterEach(() => closeAll(closers))

const remote = (more: object = {}): KubeObject =>
  object('MCPRemoteProxy', 'p', { remoteUrl: 'https://mcp.example.com/mcp', transport: 'streamable-http', ...more })
const oidcConfigRef = { name: 'corp', audience: 'notes' }
const bearer = object('MCPExternalAuthConfig', 'token', {
  type: 'bearerToken',
  bearerToken: { tokenSecretRef: { name: 'token', key: 'value' } },
})

async function applied(proxy: KubeObject, ...others: readonly KubeObject[]) {
  const cluster = createFakeCluster()
  for (const one of [inlineProvider(), ...others, proxy]) cluster.put(one)
  const { observed } = await startController(cluster, closers)
  const files = cluster.stored('ConfigMap', 'n/p-extauth')?.['data'] as Readonly<Record<string, string>> | undefined
  const stored = observed.workload('MCPRemoteProxy', 'n', 'p')
  const deployment = cluster.stored('Deployment', 'n/p-extauth')?.spec as { readonly template: KubeObject } | undefined
  return {
    route: files?.['route.yaml'],
    template: deployment?.template.spec as { readonly containers: readonly object[] } | undefined,
    status: statusOf(stored),
    ready: conditionOf(stored, 'Ready'),
  }
}

/** The webhook's decision about an object in an otherwise empty cluster. */
async function reviewed(proxy: KubeObject): Promise<string> {
  const settings = { restrictPodTemplate: false, secretsByLabel: false }
  const { decisions } = await operate(createFakeCluster(), closers, settings)
  const request = { uid: 'u', operation: 'CREATE', namespace: 'n', object: proxy } as const
  const decision = await decisions.validate(request as never, new AbortController().signal)
  return decision === undefined || decision.allowed ? 'allowed' : decision.message
}

describe('the resource that tokens of callers are for', () => {
  test.each([
    ['the URL of the Service', {}, 'http://p-extauth.n.svc.cluster.local:8080'],
    ['of its port', { proxyPort: 9000 }, 'http://p-extauth.n.svc.cluster.local:9000'],
    ['externalURL', { externalURL: 'https://mcp.example.com/notes' }, 'https://mcp.example.com/notes'],
    [
      'resourceUrl',
      { externalURL: 'https://other.example.com', resourceUrl: 'https://r.example.com' },
      'https://r.example.com',
    ],
  ])('is %s', async (_what, more, url) => {
    const { route, ready } = await applied(remote({ oidcConfigRef, ...more }))
    expect(route).toContain(`  resourceUrl: ${url}\n`)
    expect(route).not.toContain('externalURL')
    expect(ready).toMatchObject({ reason: 'DeploymentPending' })
  })

  test('is left as the reference says', async () => {
    const resourceUrl = 'https://tools.example.com/mcp'
    const { route } = await applied(
      remote({ oidcConfigRef: { ...oidcConfigRef, resourceUrl }, externalURL: 'https://o.example.com' }),
    )
    expect(route?.match(/resourceUrl: .*/g)).toEqual([`resourceUrl: ${resourceUrl}`])
  })
})

describe('a template for the container of the other proxy', () => {
  const template = (...containers: readonly object[]) => ({ podTemplateSpec: { spec: { containers } } })
  const env = [{ name: 'TZ', value: 'UTC' }]

  test('is one for ours', async () => {
    const { template: pods } = await applied(remote({ oidcConfigRef, ...template({ name: 'toolhive', env }) }))
    expect(pods?.containers).toMatchObject([{ name: 'extauth', image: 'mcp-extauth:test', env }])
  })

  test('is a container beside ours where it has an image', async () => {
    const sidecar = { name: 'toolhive', image: 'example.com/tool:1' }
    const { template: pods } = await applied(remote({ oidcConfigRef, ...template(sidecar) }))
    expect(pods?.containers).toMatchObject([{ name: 'extauth' }, sidecar])
  })

  test('is refused at admission where it adds a container that cannot run', async () => {
    const refused = 'spec.podTemplateSpec.spec.containers[1].image: missing, expected an image'
    const proxy = remote({ oidcConfigRef, ...template({ name: 'toolhive' }, { name: 'log' }) })
    expect(await reviewed(proxy)).toContain(refused)
    const { ready } = await applied(proxy)
    expect(ready).toMatchObject({ reason: 'SpecInvalid', message: expect.stringContaining(refused) as string })
    const removed = remote({ oidcConfigRef, ...template({ name: 'log', $patch: 'delete' }) })
    expect(await reviewed(removed)).toBe('allowed')
  })
})

describe('callers', () => {
  test('who are not named are refused by the field that names them, and by no option', async () => {
    const { ready } = await applied(remote())
    expect(ready?.message).toContain('spec.auth: missing')
    expect(ready?.message).toContain('auth: {mode: anonymous}')
    expect(await reviewed(remote())).toBe(ready?.message)
  })

  test('without tokens reach a backend that wants none', async () => {
    const { route } = await applied(remote({ auth: { mode: 'anonymous' } }))
    expect(route).toContain('mode: anonymous')
    expect(route).not.toContain('resourceUrl')
  })

  test('without tokens use a credential only where the manifest says so', async () => {
    const auth = { mode: 'anonymous' }
    const externalAuthConfigRef = { name: 'token' }
    const refused = await applied(remote({ auth, externalAuthConfigRef }), bearer)
    expect(refused.ready?.message).toContain('insecureAllowAnonymous: true')
    expect(refused.ready?.message).not.toMatch(/--|loopback|unix:/)
    const runs = await applied(remote({ auth, externalAuthConfigRef, insecureAllowAnonymous: true }), bearer)
    expect(runs.route).toContain('insecureAllowAnonymous: true')
    expect(runs.ready).toMatchObject({ reason: 'DeploymentPending' })
  })

  test('of an MCPOIDCConfig that is not there yet are allowed; what the manifest says otherwise is validated', async () => {
    expect(await reviewed(remote({ oidcConfigRef }))).toBe('allowed')
    expect(await reviewed(remote({ oidcConfigRef, toolConfigRef: { name: 'few' } }))).toBe('allowed')
    expect(await reviewed(remote({ oidcConfigRef, authzConfigRef: { name: 'few' } }))).toMatch(
      /^spec\.authzConfigRef: .*"kubectl get mcpauthzconfig few -o yaml \| extauth convert cedar -".*remove the field to serve without it$/,
    )
  })
})

test('the condition and the webhook show the rules that decide as Cedar policies do', async () => {
  const policies = ['permit(principal, action == Action::"call_tool", resource == Tool::"search");']
  const proxy = remote({ oidcConfigRef, authzConfig: { type: 'inline', inline: { policies } } })
  const shown = '{"name":"policy-1","tools":["search"],"effect":"allow"}'
  expect((await applied(proxy)).ready?.message).toContain(shown)
  expect(await reviewed(proxy)).toContain(shown)
})

describe('an embedded authorization server whose upstream never says who logged in', () => {
  const server = (oauth2: object) => ({
    issuer: 'https://notes.example.com',
    upstreamProviders: [
      {
        name: 'notes',
        type: 'oauth2',
        oauth2Config: {
          authorizationEndpoint: 'https://mcp.example.com/authorize',
          tokenEndpoint: 'https://mcp.example.com/token',
          dcrConfig: { discoveryUrl: 'https://mcp.example.com/.well-known/oauth-authorization-server' },
          ...oauth2,
        },
      },
    ],
  })
  const config = (oauth2: object = {}) =>
    object('MCPExternalAuthConfig', 'login', { type: 'embeddedAuthServer', embeddedAuthServer: server(oauth2) })
  const callers = object('MCPOIDCConfig', 'own', { type: 'inline', inline: { issuer: 'https://notes.example.com' } })
  const resourceUrl = 'https://notes.example.com/mcp'
  const proxy = remote({
    authServerRef: { kind: 'MCPExternalAuthConfig', name: 'login' },
    oidcConfigRef: { name: 'own', audience: resourceUrl, resourceUrl },
  })

  test.each([
    ['True OAuth2UpstreamWithoutUserInfo', {}],
    ['False AllUpstreamsHaveUserInfo', { userInfo: { endpointUrl: 'https://mcp.example.com/me' } }],
  ])('has the condition IdentitySynthesized %s', async (expected, oauth2) => {
    const cluster = createFakeCluster()
    for (const one of [config(oauth2), object('VirtualMCPServer', 'v', { authServerConfig: server(oauth2) })])
      cluster.put(one)
    const { observed } = await startController(cluster, closers)
    for (const one of [observed.config('n', 'login'), observed.workload('VirtualMCPServer', 'n', 'v')]) {
      const { status, reason } = conditionOf(one, 'IdentitySynthesized') ?? {}
      expect(`${status} ${reason}`).toBe(expected)
    }
  })

  test('runs for a proxy, also where an MCPOIDCConfig names its issuer', async () => {
    const { ready } = await applied(proxy, config(), callers)
    expect(ready).toMatchObject({ reason: 'DeploymentPending' })
    const { config: found } = resolveProxy(parseObjects([config(), callers, proxy]), {
      namespace: 'n',
      listen: ':8080',
    })
    expect(found?.routes).toMatchObject([{ resourceUrl, callers: { mode: 'oauth', oauth: { providers: [] } } }])
  })
})
