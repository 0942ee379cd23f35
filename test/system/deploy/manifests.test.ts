import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Io } from '../../../src/compose/index.ts'
import { main } from '../../../src/cli/commands/index.ts'
import { loadRegistryFile, parseDocuments, type ResolvedProxy, resolveProxy } from '../../../src/load/index.ts'
import { parseGoDuration } from '../../../src/fields/index.ts'
import type { ResolvedAuth } from '../../../src/resources/index.ts'
import { openRegistryFile } from '../../support/deploy/registry-file.ts'
import {
  type Container,
  FILES,
  type Manifest,
  mountedFiles,
  ofKind,
  only,
  readManifests,
} from '../../support/deploy/manifests.ts'

/** Secrets that cert-manager or a person makes, with their keys. */
const ELSEWHERE = { 'crm-mcp-tls': ['tls.crt', 'tls.key'] }

const pod = (manifests: readonly Manifest[]) => only(manifests, 'Deployment').spec.template.spec

/** The container that runs this project. */
function ours(manifests: readonly Manifest[]): Container {
  const found = pod(manifests).containers.find(({ image }) => image.startsWith('mcp-extauth:'))
  if (found === undefined) throw new Error('none of the containers is ours')
  return found
}

const optionOf = ({ args }: Container, name: string): string => args[args.indexOf(`--${name}`) + 1] ?? ''

function proxyOf(manifests: readonly Manifest[]): { config: ResolvedProxy; files: ReturnType<typeof mountedFiles> } {
  const container = ours(manifests)
  const directory = optionOf(container, 'config')
  const files = mountedFiles(manifests, container, ELSEWHERE)
  const texts = [...files].flatMap(([name, { mount, text }]) =>
    mount === directory && text !== undefined ? [{ path: name, text }] : [],
  )
  const loaded = parseDocuments(texts)
  const result = resolveProxy(loaded)
  expect(result.problems ?? []).toEqual([])
  if (result.config === undefined) throw new Error('no configuration')
  return { config: result.config, files }
}

/** Every `SecretRef` within a value. */
function secretRefs(value: unknown): { name: string; key: string }[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([field, inner]: [string, unknown]) =>
    field.endsWith('SecretRef') && inner !== undefined ? [inner as { name: string; key: string }] : secretRefs(inner),
  )
}

/** Every file that this configuration reads, secrets included. */
function filesRead(config: ResolvedProxy): string[] {
  const auths: ResolvedAuth[] = config.routes.map((route) => route.auth)
  const refs = [...secretRefs(auths), ...(config.sessionKeySecretRef === undefined ? [] : [config.sessionKeySecretRef])]
  const providers = config.routes.flatMap(({ callers }) => (callers.mode === 'oauth' ? callers.oauth.providers : []))
  const named = [
    config.admin.tokenFile,
    config.listen.tls?.certFile,
    config.listen.tls?.keyFile,
    ...providers.flatMap((provider) => [provider.caCertPath, provider.authTokenFile, provider.clientSecretFile]),
    ...config.routes.flatMap(({ targetTls }) => [targetTls?.caCertPath, targetTls?.clientCertFile]),
  ]
  return [
    ...refs.map(({ name, key }) => path.join(config.secretsDirectory, name, key)),
    ...named.filter((file) => file !== undefined),
  ]
}

const portOf = (address: string): number => Number(/:(\d+)$/.exec(address)?.[1])

async function help(command: string): Promise<string> {
  let text = ''
  const io: Io = {
    stdout: (more) => void (text += more),
    stderr: () => undefined,
    env: {},
    stdin: () => Promise.resolve(''),
    stop: Promise.resolve('SIGTERM'),
    onReload: () => undefined,
  }
  expect(await main([command, '--help'], io)).toBe(0)
  return text
}

it('there is a manifest for each way to run it', () => {
  expect(FILES).toEqual(['registry.yaml', 'remote.yaml', 'sidecar.yaml'])
})

describe.each(['sidecar.yaml', 'remote.yaml'])('the proxy of config/deploy/%s', (file) => {
  const manifests = readManifests(file)

  it('has a configuration that loads and resolves without a problem or a warning', () => {
    const { config } = proxyOf(manifests)
    expect(config.routes).toHaveLength(1)
    expect(config.warnings).toEqual([])
  })

  it('finds each file that the configuration names among its mounts, and has no mount that nothing reads', () => {
    const { config, files } = proxyOf(manifests)
    const read = filesRead(config)
    expect(read.length).toBeGreaterThan(2)
    for (const name of read) expect([...files.keys()]).toContain(name)
    const mounts = new Set([optionOf(ours(manifests), 'config'), ...read.map((name) => files.get(name)?.mount)])
    expect(mounts).toEqual(new Set(ours(manifests).volumeMounts.map((item) => item.mountPath)))
  })

  it('listens where the Service and the probes look for it', () => {
    const { config } = proxyOf(manifests)
    const { ports } = ours(manifests)
    const [listen, admin] = [portOf(config.listen.address), portOf(config.admin.address)]
    expect(ports.map(({ containerPort }) => containerPort)).toEqual([listen, admin])
    expect([config.listen.address, config.admin.address]).toEqual([`:${listen}`, `:${admin}`])
    expect(only(manifests, 'Service').spec.ports.map(({ targetPort }) => targetPort)).toEqual([ports[0]?.name])
  })

  it('shares the key of sessions where there are several replicas', () => {
    const isShared = proxyOf(manifests).config.sessionKeySecretRef !== undefined
    expect(isShared || only(manifests, 'Deployment').spec.replicas === 1).toBe(true)
  })
})

describe('the registry of config/deploy/registry.yaml', () => {
  const manifests = readManifests('registry.yaml')

  it('has a file that loads, and data that it can serve', async () => {
    const container = ours(manifests)
    const directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-deploy-'))
    try {
      const files = mountedFiles(manifests, container, ELSEWHERE)
      for (const [name, { text }] of files) await writeFile(path.join(directory, path.basename(name)), text ?? '')
      expect([...files.keys()]).toContain(optionOf(container, 'config'))
      const result = await loadRegistryFile(path.join(directory, path.basename(optionOf(container, 'config'))))
      expect({ problems: result.problems, warnings: result.warnings }).toEqual({ problems: undefined, warnings: [] })
      for (const { source } of result.config?.registries ?? [])
        expect(await openRegistryFile(source)).toEqual({ entries: 1, problem: undefined })
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  it('is looked for at the default addresses', () => {
    const { ports, args } = ours(manifests)
    expect(ports.map(({ containerPort }) => containerPort)).toEqual([8080, 8081])
    expect(args.join(' ')).not.toContain('address')
  })
})

describe('the MCP server of config/deploy/sidecar.yaml', () => {
  const manifests = readManifests('sidecar.yaml')
  const { initContainers } = pod(manifests)

  it('ends last: it is the native sidecar of the pod, and is up before the proxy starts', () => {
    expect(initContainers.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([['tickets', 'Always']])
    expect(initContainers[0]?.startupProbe).toBeDefined()
    expect(pod(manifests).containers.map(({ name }) => name)).toEqual(['extauth'])
  })

  it('reads the bearer from the file that the proxy reads it from', () => {
    const { config } = proxyOf(manifests)
    const [ref] = secretRefs(config.routes.map(({ auth }) => auth))
    const file = path.join(config.secretsDirectory, ref?.name ?? '', ref?.key ?? '')
    const variables = initContainers.flatMap(({ env }) => env)
    expect(variables.filter(({ value }) => value === file)).toHaveLength(1)
    expect(JSON.stringify(variables)).not.toContain('secretKeyRef')
    const [server] = initContainers
    if (server === undefined) throw new Error('no MCP server')
    expect([...mountedFiles(manifests, server, ELSEWHERE).keys()]).toContain(file)
  })
})

describe.each(FILES)('config/deploy/%s', (file) => {
  const manifests = readManifests(file)
  const deployment = only(manifests, 'Deployment')

  it('starts our container with a command and options that exist', async () => {
    const [command = '', ...args] = ours(manifests).args
    const known = await help(command)
    for (const option of args.filter((arg) => arg.startsWith('--')))
      expect(known).toMatch(new RegExp(`^ +(?:-\\w, )?${option} `, 'm'))
  })

  it('is probed on the admin listener: alive by /health, in service by /readiness', () => {
    const { ports, readinessProbe, livenessProbe } = ours(manifests)
    const admin = ports[1]?.name
    expect(readinessProbe).toMatchObject({ httpGet: { path: '/readiness', port: admin } })
    expect(livenessProbe).toMatchObject({ httpGet: { path: '/health', port: admin } })
    expect(deployment.spec.template.metadata.annotations['prometheus.io/port']).toBe(String(ports[1]?.containerPort))
  })

  it('leaves enough time to stop: preStop, the grace of the drain, and some seconds', () => {
    const container = ours(manifests)
    const preStop = container.lifecycle?.preStop.sleep.seconds ?? 0
    const grace = (parseGoDuration(optionOf(container, 'drain-grace')) ?? Number.NaN) / 1000
    expect(preStop).toBeGreaterThan(0)
    expect(pod(manifests).terminationGracePeriodSeconds).toBeGreaterThanOrEqual(preStop + grace + 5)
  })

  it('gives each container as little as it needs', () => {
    const { initContainers, containers, securityContext, automountServiceAccountToken, enableServiceLinks } =
      pod(manifests)
    expect({ automountServiceAccountToken, enableServiceLinks }).toEqual({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
    })
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    for (const item of [...initContainers, ...containers]) {
      expect(Object.keys(item.resources.requests)).toEqual(['cpu', 'memory'])
      expect(Object.keys(item.resources.limits)).toContain('memory')
      expect(item.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  it('has secrets without values, readable by the group of the process only', () => {
    for (const { stringData } of ofKind(manifests, 'Secret'))
      expect(new Set(Object.values(stringData))).toEqual(new Set(['REPLACE-ME']))
    for (const { secret } of pod(manifests).volumes) expect(secret?.defaultMode ?? 0o440).toBe(0o440)
  })

  it('may be drained one pod at a time, where there are several', () => {
    const budgets = ofKind(manifests, 'PodDisruptionBudget')
    expect(budgets).toHaveLength(deployment.spec.replicas > 1 ? 1 : 0)
  })

  it('may ask the name server of its node wherever it may ask that of the cluster', () => {
    const egress = ofKind(manifests, 'NetworkPolicy').flatMap(({ spec }) => spec.egress ?? [])
    for (const rule of egress.filter(({ ports }) => ports.some((item) => item.port === 53)))
      expect(JSON.stringify(rule.to)).toContain('169.254.20.10/32')
  })

  it('selects its own pods everywhere', () => {
    const { labels } = deployment.spec.template.metadata
    const selectors = [
      deployment.spec.selector.matchLabels,
      ...ofKind(manifests, 'Service').map(({ spec }) => spec.selector),
      ...ofKind(manifests, 'PodDisruptionBudget').map(({ spec }) => spec.selector.matchLabels),
      ...ofKind(manifests, 'NetworkPolicy').map(({ spec }) => spec.podSelector.matchLabels),
    ]
    for (const selector of selectors) expect(labels).toEqual(selector)
    const open = ours(manifests).ports.map(({ containerPort }) => containerPort)
    for (const { spec } of ofKind(manifests, 'NetworkPolicy'))
      expect(new Set(spec.ingress.flatMap(({ ports }) => ports.map((item) => item.port)))).toEqual(new Set(open))
  })
})
