import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { kubeconfig, startApiServer } from '../../support/e2e/api-server.ts'
import { extauth } from '../../support/e2e/process.ts'
import { freePort } from '../../support/e2e/run.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const TIMEOUT = { timeout: 30_000, interval: 50 }
const SPEC = {
  remoteUrl: 'https://api.example.com/mcp',
  externalAuthConfigRef: { name: 'github' },
  resourceUrl: 'https://mcp.example.com',
  oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
}
const object = (kind: string, name: string, spec: object, generation = 1) => ({
  apiVersion: 'extauth.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'n', uid: `uid-${name}`, generation, resourceVersion: '1' },
  spec,
})
const BEARER = object('MCPExternalAuthConfig', 'github', {
  type: 'bearerToken',
  bearerToken: { tokenSecretRef: { name: 'token', key: 'value' } },
})
const secret = (labels: Record<string, string>) => ({
  metadata: { name: 'token', namespace: 'n', uid: 'uid-token', resourceVersion: '1', labels },
})

/** `extauth operator` with these options in front of an API server that holds these objects. */
async function operate(options: readonly string[], held: Record<string, readonly object[]>) {
  const [port, server] = await Promise.all([freePort(), startApiServer(sockets, held)])
  const files = { kubeconfig: kubeconfig(server.url), 'tls.crt': TLS.server.cert, 'tls.key': TLS.server.key }
  const where = ['--kubeconfig', '{dir}/kubeconfig', '--namespace', 'n', '--operator-namespace', 'n']
  const webhook = ['--webhook-address', `127.0.0.1:${port}`, '--webhook-cert-dir', '{dir}']
  const args = ['operator', ...where, ...webhook, '--admin', '127.0.0.1:0', '--log-format', 'json']
  const running = await startWith(sockets, files, [...args, ...options])
  const listening = await running.line('listening')
  /** The webhook's response to the creation of an object. */
  const review = async (asked: {
    readonly kind: string
  }): Promise<{ allowed: boolean; status?: { message: string } }> => {
    const request = {
      uid: 'u',
      kind: { group: '', version: '', kind: asked.kind },
      namespace: 'n',
      operation: 'CREATE',
    }
    const body = JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: { ...request, object: asked },
    })
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const to = { host: '127.0.0.1', port, path: '/validate', method: 'POST', ca: TLS.ca, agent: false, headers }
    const answer = await new Promise<string>((resolve, reject) => {
      const asking = httpsRequest(to, (response) => void text(response).then(resolve, reject))
      asking.on('error', reject).end(body)
    })
    return (JSON.parse(answer) as { response: { allowed: boolean; status?: { message: string } } }).response
  }
  const conditionOf = (name: string, type: string): string => {
    const written = server.writes.findLast(({ what }) => what.endsWith(`/mcpremoteproxies/${name}/status`))
    const { status } = JSON.parse(written?.body ?? '{}') as {
      status?: { conditions: { type: string; reason: string; message: string }[] }
    }
    const { reason, message } = status?.conditions.find((one) => one.type === type) ?? {}
    return `${reason}: ${message}`
  }
  const deployments = (): string[] =>
    server.writes.flatMap(({ what }) => (what.includes('/deployments/') ? [what.split('/').at(-1) ?? ''] : []))
  return { listening, review, conditionOf, deployments }
}

describe('extauth operator --restrict-pod-template', () => {
  const FIELDS: Readonly<Record<string, unknown>> = {
    podTemplateSpec: { spec: { containers: [{ name: 'extauth', command: ['sh'] }] } },
    serviceAccountName: 'admin',
    image: 'evil:1',
    egress: [{ to: [{ podSelector: {} }] }],
  }
  const proxies = Object.entries(FIELDS).map(([field, value], index) =>
    object('MCPRemoteProxy', `p${index}`, { ...SPEC, [field]: value }),
  )
  const held = {
    mcpexternalauthconfigs: [BEARER],
    mcpremoteproxies: [...proxies, object('MCPRemoteProxy', 'fine', SPEC)],
  }

  it('says so, refuses each field, and makes no pods of what is stored already', async () => {
    const { listening, review, conditionOf, deployments } = await operate(['--restrict-pod-template'], held)
    expect(listening).toMatchObject({ restrictPodTemplate: true, secretsByLabel: false })
    await vi.waitFor(
      async () => expect(await review(object('MCPRemoteProxy', 'new', SPEC))).toMatchObject({ allowed: true }),
      TIMEOUT,
    )
    const words = (field: string) =>
      `spec.${field}: the operator runs with --restrict-pod-template, so it may not be set`
    for (const [index, field] of Object.keys(FIELDS).entries()) {
      expect(await review(object('MCPRemoteProxy', 'new', { ...SPEC, [field]: FIELDS[field] }))).toMatchObject({
        allowed: false,
        status: { message: words(field) },
      })
      await vi.waitFor(() => expect(conditionOf(`p${index}`, 'Ready')).toBe(`SpecInvalid: ${words(field)}`), TIMEOUT)
    }
    await vi.waitFor(() => expect(deployments()).toContain('fine-extauth'), TIMEOUT)
    expect(new Set(deployments())).toEqual(new Set(['fine-extauth']))
  }, 60_000)

  it('is off unless it is said', async () => {
    const { listening, review, deployments } = await operate([], held)
    expect(listening).toMatchObject({ restrictPodTemplate: false })
    await vi.waitFor(
      () =>
        expect(new Set(deployments())).toEqual(
          new Set(['fine', 'p0', 'p1', 'p2', 'p3'].map((name) => `${name}-extauth`)),
        ),
      TIMEOUT,
    )
    for (const [field, value] of Object.entries(FIELDS))
      expect(await review(object('MCPRemoteProxy', 'new', { ...SPEC, [field]: value }))).toMatchObject({
        allowed: true,
      })
  }, 60_000)
})

describe('extauth operator --secrets-by-label', () => {
  const BY_LABEL = ['--watch-secrets', '--secrets-by-label']
  const heldWith = (labels: Record<string, string>) => ({
    mcpexternalauthconfigs: [BEARER],
    mcpremoteproxies: [object('MCPRemoteProxy', 'p', SPEC)],
    secrets: [secret(labels)],
  })

  it('refuses who names a Secret without the label, and gives it to no pod', async () => {
    const { listening, review, conditionOf, deployments } = await operate(BY_LABEL, heldWith({}))
    expect(listening).toMatchObject({ restrictPodTemplate: false, secretsByLabel: true })
    await vi.waitFor(async () => {
      const answer = await review(BEARER)
      expect(answer.allowed).toBe(false)
      expect(answer.status?.message).toContain('the Secret "token" has no label extauth.dev/usable: "true"')
    }, TIMEOUT)
    await vi.waitFor(() => expect(conditionOf('p', 'SecretsResolved')).toMatch(/^SecretsNotUsable: .*"?token/), TIMEOUT)
    expect(deployments()).toEqual([])
  }, 60_000)

  it('lets one be named that has it', async () => {
    const { review, deployments } = await operate(BY_LABEL, heldWith({ 'extauth.dev/usable': 'true' }))
    await vi.waitFor(() => expect(deployments()).toContain('p-extauth'), TIMEOUT)
    expect(await review(BEARER)).toMatchObject({ allowed: true })
  }, 60_000)

  it('is refused where labels can not be seen', async () => {
    const running = extauth(['operator', '--secrets-by-label', '--kubeconfig', '/nowhere'])
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toContain('--secrets-by-label requires --watch-secrets')
  }, 60_000)
})
