import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES, ownTypes } from '../../../src/operator/index.ts'
import { CHART } from '../../support/deploy/chart-record.ts'
import { requestsOf } from '../support/audit-log.ts'
import { eventually } from '../support/control-plane.ts'
import { findHelm } from '../support/helm.ts'
import { documentedShell, generations, type OperatorPod, SYSTEM, useInstallation } from '../support/installation.ts'
import { config, GROUP, namespaceObject, types, workload } from '../support/operator-rig.ts'
import { CRDS } from '../support/other-operator.ts'

// The life of a release: an earlier chart, this one, its variants, and back, with a real Helm.
const USER = `system:serviceaccount:${SYSTEM}:extauth-operator`
const SPACE = 'mcp'
const cluster = useInstallation()
const directory = mkdtempSync(path.join(tmpdir(), 'extauth-chart-'))
let program = 'helm'
let operator: OperatorPod

const helm = (...args: string[]): string =>
  execFileSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, KUBECONFIG: cluster.plane.kubeconfigPath },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
const upgrade = (...sets: string[]): string =>
  helm('upgrade', 'mcp-extauth', CHART, ...sets.flatMap((set) => ['--set', set]))
const get = (name: string) => cluster.client.get(types.MCPExternalAuthConfig, SPACE, name)
const columns = async (): Promise<string> => {
  const { spec } = await cluster.client.get(CRDS, undefined, 'mcpexternalauthconfigs.extauth.dev')
  return JSON.stringify(
    (spec as { versions: { additionalPrinterColumns: object[] }[] }).versions[0]?.additionalPrinterColumns,
  )
}
const isLookedAt = (name: string): Promise<unknown> =>
  eventually(async () => expect((await get(name)).status).toHaveProperty('configHash'))

/** The chart as an earlier version was: definitions of v1alpha1 only, without a column. */
function earlierChart(): string {
  const chart = path.join(directory, 'mcp-extauth')
  cpSync(CHART, chart, { recursive: true })
  // Its operator does not run here, and nothing waits for its answers.
  rmSync(path.join(chart, 'templates/webhooks.yaml'))
  const folder = path.join(chart, 'files/crds')
  for (const name of readdirSync(folder).filter((one) => one.startsWith('extauth.dev_'))) {
    const file = path.join(folder, name)
    const text = readFileSync(file, 'utf8')
    const before = text
      .replace(/    - name: v1beta1\n(      .*\n)+/, '')
      .replace('storage: false', 'storage: true')
      .replace(/        - name: Hash\n(          .*\n)+/, '')
    if (before.includes('v1beta1') || before === text) throw new Error('the definition is as it was')
    writeFileSync(file, before)
  }
  return chart
}

beforeAll(async () => {
  program = findHelm(true) ?? program
  await cluster.client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE))
}, 900_000)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('a chart of before is installed in an empty cluster, and objects are stored by its one version', async () => {
  helm('install', 'mcp-extauth', earlierChart())
  const older = ownTypes(GROUP, 'v1alpha1')
  const stored = (object: KubeObject): KubeObject => ({ ...object, apiVersion: `${GROUP}/v1alpha1` })
  await eventually(() => cluster.client.apply(older.MCPExternalAuthConfig, stored(config('c', SPACE))))
  const entry = { remoteUrl: 'https://a.example', externalAuthConfigRef: { name: 'c' } }
  await eventually(() =>
    cluster.client.apply(older.MCPServerEntry, stored(workload('MCPServerEntry', 'e', entry, SPACE))),
  )
  expect(await columns()).not.toContain('Hash')
}, 120_000)

test('an upgrade upgrades definitions, and the operator works on what was stored', async () => {
  upgrade()
  expect(await columns()).toContain('Hash')
  expect((await eventually(() => get('c'))).apiVersion).toBe(`${GROUP}/v1beta1`)
  operator = await cluster.runOperatorPod()
  await isLookedAt('c')
}, 120_000)

test('a rollback is refused while objects are stored by the newer version; after the documented commands it works', async () => {
  await cluster.client.apply(types.MCPExternalAuthConfig, config('newer', SPACE))
  expect(() => helm('rollback', 'mcp-extauth', '1')).toThrow(/storedVersions/)
  await eventually(() => cluster.shell(documentedShell('docs/upgrade.md', '## Roll back'), 240_000), 240_000)
  expect(helm('rollback', 'mcp-extauth', '1')).toContain('Rollback was a success')
  expect(await columns()).not.toContain('Hash')
  const older = ownTypes(GROUP, 'v1alpha1').MCPExternalAuthConfig
  for (const name of ['c', 'newer']) expect(await cluster.client.get(older, SPACE, name)).toHaveProperty('spec.type')
  upgrade()
  expect(await columns()).toContain('Hash')
  await isLookedAt('newer')
  await cluster.client.remove(types.MCPExternalAuthConfig, SPACE, 'newer')
}, 600_000)

test('one that changes nothing raises no generation; one value changes its object', () => {
  const before = generations(cluster)
  const bundle = (): string =>
    cluster.kubectl(
      'get',
      'validatingwebhookconfiguration',
      'extauth',
      '-o',
      'jsonpath={.webhooks[0].clientConfig.caBundle}',
    )
  const trusted = bundle()
  expect(trusted.length).toBeGreaterThan(100)
  upgrade()
  expect([generations(cluster), bundle()]).toEqual([before, trusted])
  upgrade('replicas=3')
  const raised = generations(cluster).filter((one) => !before.includes(one))
  expect(raised).toEqual(['Deployment/extauth-operator=2'])
  expect(bundle()).toBe(trusted)
}, 120_000)

test('after uninstalling, everything that people made is there and can be edited; the next installation goes on with it', async () => {
  helm('uninstall', 'mcp-extauth')
  await operator.end()
  expect(
    cluster.kubectl('get', 'validatingwebhookconfiguration,mutatingwebhookconfiguration,clusterrole', '-o', 'name'),
  ).not.toContain('extauth')
  await eventually(() =>
    expect(cluster.client.get(CLUSTER_TYPES.Namespace, undefined, SYSTEM)).rejects.toMatchObject({ status: 404 }),
  )
  await cluster.client.apply(types.MCPExternalAuthConfig, config('c', SPACE, { type: 'unauthenticated' }))
  await cluster.client.apply(types.MCPExternalAuthConfig, config('made-meanwhile', SPACE))
  await cluster.client.remove(types.MCPServerEntry, SPACE, 'e')
  await cluster.client.remove(types.MCPExternalAuthConfig, SPACE, 'c')
  // It waits for an operator, as the page says.
  expect((await get('c')).metadata).toMatchObject({ finalizers: ['extauth.dev/external-auth-references'] })

  helm('install', 'mcp-extauth', CHART)
  operator = await cluster.runOperatorPod()
  await eventually(() => expect(get('c')).rejects.toMatchObject({ status: 404 }))
  await isLookedAt('made-meanwhile')
}, 180_000)

test.each([
  ['watchSecrets=true', '--watch-secrets', 'False'],
  [`watchNamespace=${SPACE}`, `--namespace=${SPACE}`, 'Unknown'],
])(
  'with %s the release goes over to other rights, and they are enough',
  async (value, argument, resolved) => {
    await operator.end()
    const from = requestsOf(cluster.plane, USER).length
    upgrade(value)
    cluster.kubectl('delete', 'lease', 'extauth-operator', '-n', SYSTEM)
    operator = await cluster.runOperatorPod(argument)
    const name = `with-${argument.replace(/\W+/g, '')}`
    await eventually(() => cluster.client.apply(types.MCPExternalAuthConfig, config(name, SPACE)))
    await eventually(async () => {
      const { conditions = [] } = (await get(name)).status as { conditions?: { type: string; status: string }[] }
      expect(conditions.find(({ type }) => type === 'SecretsResolved')?.status).toBe(resolved)
    })
    const events = requestsOf(cluster.plane, USER).slice(from)
    expect(events.length).toBeGreaterThan(10)
    expect(events.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([])
  },
  180_000,
)

test('another release, or one after kubectl, adopts objects only when requested', () => {
  const isRefused = (): void => expect(() => helm('install', 'other', CHART)).toThrow(/invalid ownership metadata/)
  helm('uninstall', 'mcp-extauth', '--wait')
  isRefused()
  expect(helm('install', 'other', CHART, '--take-ownership')).toContain('STATUS: deployed')
  helm('uninstall', 'other', '--wait')
  cluster.kubectl('apply', '-k', 'config/deploy/operator')
  isRefused()
  expect(helm('install', 'other', CHART, '--take-ownership')).toContain('STATUS: deployed')
}, 120_000)
