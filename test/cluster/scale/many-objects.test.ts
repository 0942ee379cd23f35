import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import { extauth } from '../../e2e/process.ts'
import { type ControlPlane, eventually, startControlPlane } from '../support/control-plane.ts'
import { config, connect, installDefinitions, types, workload } from '../support/operator-rig.ts'

const COUNT = 2_000
const USER = 'operator'

interface AuditEvent {
  readonly user: { readonly username: string }
  readonly verb: string
  readonly objectRef?: { readonly resource: string; readonly subresource?: string; readonly name?: string }
}

/** The operator has a name of its own, so that the audit log tells what it does. */
const TOKEN = 'token-of-the-operator'

function kubeconfigOf(plane: ControlPlane): string {
  const file = path.join(plane.directory, 'kubeconfig-operator')
  writeFileSync(file, readFileSync(plane.kubeconfigPath, 'utf8').replace(plane.token, TOKEN))
  return file
}

const writesIn = (plane: ControlPlane, from: number): AuditEvent[] =>
  readFileSync(plane.auditLogPath, 'utf8')
    .slice(from)
    .split('\n')
    .filter((line) => line.includes(`"username":"${USER}"`))
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter(({ verb, objectRef }) => !['get', 'list', 'watch'].includes(verb) && objectRef?.resource !== 'leases')
const auditLength = (plane: ControlPlane): number => readFileSync(plane.auditLogPath, 'utf8').length

test(`${COUNT} configs and ${COUNT} workloads: synced in 30 s, one edit is one write, an idle minute none`, async () => {
  const plane = await startControlPlane({ controllers: false, users: `${TOKEN},${USER},${USER},system:masters\n` })
  const connection = connect(plane)
  const { client } = connection
  let operator: ReturnType<typeof extauth> | undefined
  try {
    await installDefinitions(client)
    const makes: (() => Promise<KubeObject>)[] = Array.from({ length: COUNT }, (_, index) => [
      () => client.create(types.MCPExternalAuthConfig, config(`c-${index}`)),
      () =>
        client.create(
          types.MCPServerEntry,
          workload('MCPServerEntry', `e-${index}`, {
            remoteUrl: 'https://api.example.com/mcp',
            externalAuthConfigRef: { name: `c-${index}` },
          }),
        ),
    ]).flat()
    for (let at = 0; at < makes.length; at += 50) await Promise.all(makes.slice(at, at + 50).map((make) => make()))

    const file = kubeconfigOf(plane)
    const args = [
      '--kubeconfig',
      file,
      '--operator-namespace',
      'default',
      '--webhook-address',
      'off',
      '--admin',
      '127.0.0.1:0',
    ]
    const startMs = Date.now()
    operator = extauth(['operator', ...args])
    const synced = async (): Promise<void> => {
      const { items } = await client.list(types.MCPExternalAuthConfig, { namespace: 'default' })
      const ready = items.filter((item) => {
        const status = item.status as { referencingWorkloads?: unknown[]; configHash?: string } | undefined
        return status?.configHash !== undefined && status.referencingWorkloads?.length === 1
      })
      expect(ready).toHaveLength(COUNT)
    }
    // A look at all of them costs the API server as much as a hundred writes.
    const look = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      await synced()
    }
    await eventually(look, 120_000)
    const syncedMs = Date.now() - startMs
    const { admin } = await operator.line('listening')
    const memory = async (): Promise<number> => {
      const text = await (await fetch(`${String(admin)}/metrics`)).text()
      return Math.round(Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1]) / 1024 / 1024)
    }
    process.stderr.write(`synced in ${syncedMs} ms, ${await memory()} MiB resident\n`)
    // On a machine that does other work too, it takes as much longer as there is to do.
    const share = Math.max(1, (loadavg()[0] ?? 0) / availableParallelism())
    expect(syncedMs / share).toBeLessThan(30_000)

    // Nothing is under way any more.
    let before = auditLength(plane)
    await eventually(async () => {
      const from = auditLength(plane)
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      expect(writesIn(plane, from)).toEqual([])
    }, 60_000)
    before = auditLength(plane)
    const stored = await client.get(types.MCPExternalAuthConfig, 'default', 'c-7')
    const spec = { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }
    await client.update(types.MCPExternalAuthConfig, { ...stored, spec })
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    expect(
      writesIn(plane, before).map(
        ({ verb, objectRef }) =>
          `${verb} ${objectRef?.resource}/${objectRef?.subresource ?? ''} ${objectRef?.name ?? ''}`,
      ),
    ).toEqual(['patch mcpexternalauthconfigs/status c-7'])

    before = auditLength(plane)
    await new Promise((resolve) => setTimeout(resolve, 60_000))
    expect(writesIn(plane, before)).toEqual([])
    process.stderr.write(`after a minute ${await memory()} MiB resident\n`)
    operator.process.kill('SIGTERM')
    expect(await operator.ended).toBe(0)
  } finally {
    operator?.process.kill('SIGKILL')
    await connection.close()
    await plane.close()
  }
}, 400_000)
