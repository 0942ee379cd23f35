import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { freePort, startLabBackend, type LabBackend } from '../../lab/index.ts'
import { KubeError, type KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, ownTypes } from '../../src/operator/index.ts'
import { Browser } from '../support/authserver/browser.ts'
import { makePkce } from '../support/authserver/rig.ts'
import { extauth } from '../support/e2e/process.ts'
import { MODES } from '../support/lab/client-behaviours.ts'
import { proxyOf, type Published, readPublished } from '../support/operator/published.ts'
import { eventually } from './support/control-plane.ts'
import { type Internet, ROLE, startInternet } from './support/internet.ts'
import { openKubelet } from './support/kubelet.ts'
import { GROUP, namespaceObject } from './support/operator-rig.ts'
import { podsOf } from './support/pods.ts'
import { useCluster } from './support/use-cluster.ts'

// Published documents on a real API server, with no change but the group and as `extauth convert` writes them. Each becomes
// pods that answer a call, or is refused by a sentence that names a field.
const TOOLHIVE = 'toolhive.stacklok.dev'
const DOCUMENTS = readPublished()
const cluster = useCluster({ webhook: true, plane: { issuer: 'https://kubernetes.default.svc' } })
let internet: Internet
let backend: LabBackend
let converted: readonly KubeObject[] = []

const spaceOf = (way: 'unchanged' | 'converted', published: Published): string =>
  `${way}-${DOCUMENTS.indexOf(published)}`
const objectsOf = (published: Published, group: string, namespace: string): KubeObject[] =>
  published.objects.map(({ kind, name, spec }) => ({
    apiVersion: `${group}/${published.version ?? 'v1beta1'}`,
    kind,
    metadata: { name, namespace },
    spec,
  }))

/** The result of `extauth convert` for all documents in one file. */
async function convertAll(): Promise<{ objects: KubeObject[]; code: number | null }> {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-corpus-'))
  const objects = DOCUMENTS.flatMap((one) => objectsOf(one, TOOLHIVE, spaceOf('converted', one)))
  writeFileSync(path.join(directory, 'all.yaml'), objects.map((one) => JSON.stringify(one)).join('\n---\n'))
  try {
    const running = extauth(['convert', directory])
    const code = await running.ended
    const documents = parseAllDocuments(running.stdout()).map((document) => document.toJS() as KubeObject)
    return { objects: documents.filter((document) => document !== null), code }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

beforeAll(async () => {
  internet = await startInternet(Number(new URL(cluster.plane.server).port))
  backend = await startLabBackend({ port: 0, mounts: {}, clock: { now: () => Date.now() } })
  const { client } = cluster
  for (const name of ['apps', ...DOCUMENTS.flatMap((one) => [spaceOf('unchanged', one), spaceOf('converted', one)])])
    await client.apply(
      CLUSTER_TYPES.Namespace,
      namespaceObject(name, { 'pod-security.kubernetes.io/enforce': 'restricted' }),
    )
  for (const [namespace, name] of [
    ['apps', 'client'],
    ...DOCUMENTS.map((one) => [spaceOf('unchanged', one), 'caller']),
    ...DOCUMENTS.map((one) => [spaceOf('converted', one), 'caller']),
  ])
    await client.apply(CLUSTER_TYPES.ServiceAccount, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: name ?? '', namespace: namespace ?? '' },
    })
  const { objects, code } = await convertAll()
  // Some of them restrict: that is for people to take away.
  expect(code).toBe(1)
  converted = objects
}, 240_000)
afterAll(async () => {
  await backend?.close()
  await internet?.close()
}, 60_000)

/** Why it has no pods: what admission answered, or its condition; undefined where pods are wanted. */
async function refusalOf(objects: readonly KubeObject[]): Promise<string | undefined> {
  const { client } = cluster
  for (const object of objects) {
    const version = object.apiVersion.split('/')[1]
    const types = ownTypes(GROUP, version) as Readonly<Record<string, ReturnType<typeof ownTypes>['MCPRemoteProxy']>>
    const type = types[object.kind]
    if (type === undefined) throw new Error(`no definition of ${object.kind}`)
    try {
      await client.apply(type, object)
    } catch (error) {
      if (!(error instanceof KubeError) || (error.status !== 400 && error.status !== 403 && error.status !== 422))
        throw error
      return error.message
    }
  }
  const { name, namespace = '' } = objects.find(({ kind }) => kind === 'MCPRemoteProxy')?.metadata ?? { name: '' }
  return eventually(async () => {
    const { status, metadata } = await client.get(ownTypes(GROUP).MCPRemoteProxy, namespace, name)
    const { observedGeneration, conditions = [] } = (status ?? {}) as {
      observedGeneration?: number
      conditions?: { type: string; reason: string; message: string }[]
    }
    const ready = conditions.find(({ type }) => type === 'Ready')
    if (observedGeneration !== metadata.generation || ready === undefined) throw new Error('no status yet')
    const { items } = await client.list(CLUSTER_TYPES.Deployment, { namespace })
    if (ready.reason === 'DeploymentPending' && items.length === 0) throw new Error('no Deployment yet')
    return items.length > 0 ? undefined : `${ready.reason} ${ready.message}`
  })
}

/** How the callers of a document get in. */
async function tokenFor(published: Published, namespace: string): Promise<string | undefined> {
  const reference = proxyOf(published).spec['oidcConfigRef'] as { name: string; audience: string } | undefined
  if (reference === undefined) return undefined
  const { spec } = published.objects.find(({ kind, name }) => kind === 'MCPOIDCConfig' && name === reference.name) ?? {
    spec: {},
  }
  const { inline, kubernetesServiceAccount: account } = spec as {
    inline?: { issuer: string }
    kubernetesServiceAccount?: { serviceAccount?: string; namespace?: string }
  }
  if (inline !== undefined)
    return internet.tokenFor(reference.audience, new URL(inline.issuer).pathname.replace(/\/$/, ''))
  const of = `${account?.namespace ?? namespace}/serviceaccounts/${account?.serviceAccount ?? 'caller'}`
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [reference.audience] },
  }
  const answer = await eventually(() => cluster.client.raw('POST', `/api/v1/namespaces/${of}/token`, body))
  return (answer as { status: { token: string } }).status.token
}

const REDIRECT = 'http://127.0.0.1:7777/callback'

/** A login with the embedded server behind the gateway. */
async function logIn(resource: string): Promise<string> {
  const issuer = 'https://tools.example.com'
  const registration = await internet.fetch(`${issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Test', redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' }),
  })
  const client = (await registration.json()) as { client_id: string }
  const browser = new Browser({}, internet.fetch)
  const { verifier, challenge } = makePkce()
  const url = new URL(`${issuer}/oauth/authorize`)
  for (const [name, value] of Object.entries({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: REDIRECT,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 's',
    resource,
  }))
    url.searchParams.set(name, value)
  let seen = await browser.get(url.href)
  if (seen.status === 200) seen = await browser.press(seen, 'continue')
  while (seen.location?.startsWith(REDIRECT) === false) seen = await browser.get(seen.location)
  const code = new URL(seen.location ?? `${REDIRECT}?${seen.html}`).searchParams.get('code') ?? ''
  const tokens = await internet.fetch(`${issuer}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: client.client_id,
      code,
      code_verifier: verifier,
      redirect_uri: REDIRECT,
      resource,
    }),
  })
  const { access_token: token } = (await tokens.json()) as { access_token?: string }
  if (token === undefined) throw new Error(`no token: ${tokens.status} ${JSON.stringify(seen)}`)
  return token
}

/** Starts the program as its pods would, and calls it. */
async function call(published: Published, namespace: string): Promise<void> {
  const { name, spec } = proxyOf(published)
  const { client } = cluster
  const secret = { value: 'of-the-backend', key: 'of-the-client', secret: 'of-the-client', token: 'of-the-backend' }
  const data = Object.fromEntries(Object.entries(secret).map(([key, text]) => [key, btoa(text)]))
  for (const of of ['token', 'proxy', 'corp', 'key'])
    await client.apply(CLUSTER_TYPES.Secret, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: of, namespace },
      data,
    })
  const { replicas = 1 } = spec as { replicas?: number }
  const [pod] = await podsOf(client, namespace, name, replicas)
  if (pod === undefined) throw new Error('no pod')
  const kubelet = await openKubelet(client, pod, 'extauth')
  // In a pod both ports are its own; here other tests may have them.
  const port = await freePort()
  const proxy = kubelet.start(['--listen', `:${port}`, '--admin', '127.0.0.1:0'], internet.env)
  try {
    await proxy.line('listening')
    const url = `http://127.0.0.1:${port}`
    const target = new URL((spec['remoteUrl'] ?? spec['remoteURL']) as string)
    const mcp = `${url}${target.pathname}`
    internet.expose(port)
    const isLogin = spec['authServerRef'] !== undefined
    const challenged = await fetch(mcp, { method: 'POST', body: '{}' })
    await challenged.body?.cancel()
    const token = isLogin ? await logIn(resourceOf(challenged)) : await tokenFor(published, namespace)
    expect(challenged.status === 401).toBe(token !== undefined)
    internet.arrived.splice(0)
    const connect = MODES['client 2.x (2026-07-28)']
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const connected = await connect?.({ url: mcp, backend, headers })
    const { tools } = (await connected?.list()) ?? { tools: [] }
    await connected?.close()
    const names = tools.map((tool) => tool.name)
    expect(names).toContain('show_request')
    if (spec['toolConfigRef'] !== undefined) expect(names).toEqual(['show_request'])
    const [arrived] = internet.arrived
    expect(arrived).toMatchObject({ host: target.host, path: target.pathname })
    expect(arrived?.authorization ?? '').not.toContain(token ?? 'Bearer')
    if (published.objects.some((one) => one.kind === 'MCPExternalAuthConfig' && one.name === 'sts'))
      expect(arrived?.signedAs).toBe(ROLE)
    if (published.objects.some((one) => one.kind === 'MCPExternalAuthConfig' && one.name === 'token'))
      expect(arrived?.authorization).toBe('Bearer of-the-backend')
  } catch (error) {
    throw new Error(`${String(error)}\n${proxy.stderr().slice(-3000)}`, { cause: error })
  } finally {
    proxy.process.kill('SIGKILL')
    await proxy.ended
    kubelet.close()
  }
}

/** The resource that a challenge leads to. */
function resourceOf(challenged: Response): string {
  const metadata = /resource_metadata="([^"]+)"/.exec(challenged.headers.get('www-authenticate') ?? '')?.[1] ?? ''
  return metadata.replace('/.well-known/oauth-protected-resource', '')
}

/** In a cluster there is no command line, and no file. */
function expectSentence(refusal: string | undefined, field: string): void {
  expect(refusal).toContain(field)
  expect(refusal).not.toMatch(/--[a-z]|loopback|ProxyConfig|unknown field/)
  // The remedy: another value, or the object or the value that is missing.
  expect(refusal).toMatch(/expected|remove the field|there is no|Required value/)
}

describe('with no change but the group', () => {
  test.each(DOCUMENTS)(
    '$shape: $becomes',
    async (published) => {
      const namespace = spaceOf('unchanged', published)
      const refusal = await refusalOf(objectsOf(published, GROUP, namespace))
      if (published.becomes !== 'pods') return expectSentence(refusal, published.becomes)
      expect(refusal).toBeUndefined()
      await call(published, namespace)
    },
    120_000,
  )
})

describe('converted', () => {
  test.each(DOCUMENTS)(
    '$shape',
    async (published) => {
      const namespace = spaceOf('converted', published)
      const objects = converted.filter(({ metadata }) => metadata.namespace === namespace)
      const refusal = await refusalOf(objects)
      const becomes = published.converted ?? published.becomes
      if (becomes !== 'pods') return expectSentence(refusal, becomes)
      expect(refusal).toBeUndefined()
      await call(published, namespace)
    },
    120_000,
  )
})
