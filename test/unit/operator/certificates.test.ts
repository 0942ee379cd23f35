import { X509Certificate } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type KubeClient, KubeError, type KubeObject, type ResourceType } from '../../../src/kube/index.ts'
import type { Certificate } from '../../../src/operator/index.ts'
import { type CertificateKeeper, keepCertificate } from '../../../src/operator/webhook/certificate-keeper.ts'
import { isDue, issueCertificates, mergeBundles } from '../../../src/operator/webhook/certificates.ts'
import { createManualTimers } from '../../support/kube/manual-timers.ts'
import { createRecordingLog, createRecordingMetrics, START_MS } from '../../support/ports.ts'

const DAY_MS = 24 * 3600 * 1000
/** Short, because the check runs every half minute. */
const LIFE_MS = 600_000
const issue = (nowMs = START_MS) => issueCertificates({ names: ['hook.ns.svc', '10.0.0.1'], nowMs })

describe('a certificate that was made here', () => {
  test('is for the names of the Service, by an authority that can sign nothing below it', async () => {
    const { serving, caBundle } = await issue()
    const [leaf, ca] = [new X509Certificate(serving.cert), new X509Certificate(caBundle)]
    expect([leaf.ca, ca.ca]).toEqual([false, true])
    expect(leaf.verify(ca.publicKey)).toBe(true)
    expect(leaf.checkHost('hook.ns.svc')).toBe('hook.ns.svc')
    expect(leaf.checkIP('10.0.0.1')).toBe('10.0.0.1')
    expect(leaf.checkHost('other.ns.svc')).toBeUndefined()
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    expect(serving.notAfterMs).toBe(START_MS + 90 * DAY_MS)
    // Clocks differ.
    expect(serving.notBeforeMs).toBe(START_MS - 5 * 60_000)
    expect(new X509Certificate((await issue()).caBundle).subject).not.toBe(ca.subject)
  })

  test('is renewed at two thirds of its life; by who does not lead, at three quarters', () => {
    // Issued at 0; five minutes are for clocks that differ.
    const certificate = { notBeforeMs: -300_000, notAfterMs: 1200 }
    const at = (nowMs: number, isLeader: boolean) => isDue({ ...certificate } as Certificate, nowMs, isLeader)
    expect([at(799, true), at(800, true), at(899, false), at(900, false)]).toEqual([false, true, false, true])
    // A certificate that is not yet valid cannot be used.
    expect([at(-300_001, true), at(-300_001, false), at(-1, true)]).toEqual([true, true, false])
  })

  test('is trusted beside those before it, each once, and none that is over', async () => {
    const [old, now] = [await issue(START_MS - 100 * DAY_MS), await issue()]
    expect(mergeBundles(now.caBundle, old.caBundle, START_MS)).toBe(now.caBundle)
    const both = mergeBundles(now.caBundle, old.caBundle, START_MS - 50 * DAY_MS)
    expect(both).toBe(now.caBundle + old.caBundle)
    expect(mergeBundles(now.caBundle, `${both}rubbish`, START_MS - 50 * DAY_MS)).toBe(both)
  })
})

const HOOKS: KubeObject = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'X',
  metadata: { name: 'extauth' },
  webhooks: [{ name: 'one', clientConfig: { service: { name: 's' }, caBundle: '' } }],
}

/** A cluster of one Secret and two webhook configurations, and a replica beside it. */
function cluster(isLeader: () => boolean = () => true) {
  const objects = new Map<string, KubeObject>([
    ['ValidatingWebhookConfiguration', HOOKS],
    ['MutatingWebhookConfiguration', HOOKS],
  ])
  const writes: string[] = []
  const timers = createManualTimers(START_MS)
  let refuse: ((verb: string, kind: string) => number | undefined) | undefined
  let version = 0
  const put =
    (verb: string) =>
    async ({ kind }: ResourceType, object: KubeObject) => {
      const status = refuse?.(verb, kind)
      if (status !== undefined) throw new KubeError(status, '')
      // An update was built from the current object.
      const before = objects.get(kind)?.metadata.resourceVersion
      if (object.metadata.resourceVersion !== before) throw new KubeError(409, 'Conflict')
      writes.push(`${verb} ${kind}`)
      const written = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } }
      objects.set(kind, written)
      return Promise.resolve(written)
    }
  const client = {
    get: async ({ kind }: ResourceType) => {
      const found = objects.get(kind)
      if (found === undefined) throw new KubeError(404, 'NotFound')
      return Promise.resolve(found)
    },
    create: put('create'),
    update: put('update'),
  } as unknown as KubeClient
  const served: Certificate[] = []
  const keep = (names = ['hook.ns.svc']): Promise<CertificateKeeper> =>
    keepCertificate({
      client,
      namespace: 'ns',
      secretName: 's',
      configurationName: 'extauth',
      names,
      lifetimeMs: LIFE_MS,
      isLeader,
      onCertificate: (certificate) => {
        served.push(certificate)
        writes.push('serve')
      },
      clock: timers,
      log: createRecordingLog(),
      metrics: createRecordingMetrics(),
      timers,
    }).then((keeper) => (keepers.push(keeper), keeper))
  const bundleIn = (kind: string): string => {
    const [hook] = (objects.get(kind)?.['webhooks'] ?? []) as { clientConfig: { caBundle: string } }[]
    return Buffer.from(hook?.clientConfig.caBundle ?? '', 'base64').toString()
  }
  return {
    objects,
    writes,
    served,
    timers,
    keep,
    bundleIn,
    refuse: (by: typeof refuse) => void (refuse = by),
  }
}

const keepers: CertificateKeeper[] = []
afterEach(() => {
  for (const keeper of keepers.splice(0)) keeper.close()
})

/** Time passes in steps, because certificates are made on threads of their own. */
async function pass({ timers }: ReturnType<typeof cluster>, until: () => boolean): Promise<void> {
  for (let step = 0; step < 400 && !until(); step++) {
    await timers.advance(250)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

describe('the keeper of the certificate', () => {
  test('generates it, updates both configurations, then serves it; another replica serves the same', async () => {
    const world = cluster()
    const keeper = await world.keep()
    expect(world.writes).toEqual([
      'create Secret',
      'update ValidatingWebhookConfiguration',
      'update MutatingWebhookConfiguration',
      'serve',
    ])
    expect(keeper.isValid).toBe(true)
    for (const kind of ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'])
      expect(
        new X509Certificate(world.served[0]?.cert ?? '').verify(new X509Certificate(world.bundleIn(kind)).publicKey),
      ).toBe(true)
    await world.keep()
    expect(world.served.map(({ cert }) => cert)).toEqual([world.served[0]?.cert, world.served[0]?.cert])
    expect(world.writes.filter((write) => write.endsWith('Secret'))).toHaveLength(1)
  })

  test('publishes a new CA for a while before it serves certificates of it', async () => {
    const world = cluster()
    await world.keep()
    const before = world.bundleIn('MutatingWebhookConfiguration')
    world.writes.length = 0
    await world.timers.advance(LIFE_MS * 0.64)
    await pass(world, () => world.writes.includes('update MutatingWebhookConfiguration'))
    expect(world.writes).not.toContain('update Secret')
    const trusted = world.bundleIn('MutatingWebhookConfiguration')
    expect(trusted).toContain(before)
    expect(trusted.length).toBeGreaterThan(before.length)
    const trustedAtMs = world.timers.now()
    await pass(world, () => world.served.length === 2)
    expect(world.writes.slice(0, 3)).toEqual([
      'update ValidatingWebhookConfiguration',
      'update MutatingWebhookConfiguration',
      'update Secret',
    ])
    expect(world.timers.now() - trustedAtMs).toBeGreaterThanOrEqual(2750)
  })

  test('takes what another replica was faster with', async () => {
    const [mine, theirs] = [cluster(), cluster()]
    await theirs.keep()
    mine.refuse((verb, kind) => {
      if (verb !== 'create' || kind !== 'Secret') return undefined
      mine.objects.set('Secret', theirs.objects.get('Secret') ?? HOOKS)
      return 409
    })
    await mine.keep()
    expect(mine.served.map(({ cert }) => cert)).toEqual(theirs.served.map(({ cert }) => cert))
  })

  test('leaves the configurations alone while it does not lead, and serves all the same', async () => {
    const world = cluster(() => false)
    await world.keep()
    expect(world.writes).toEqual(['create Secret', 'serve'])
  })

  test('serves nothing that could not be written, and tries again', async () => {
    const world = cluster()
    world.refuse(() => 500)
    const keeper = await world.keep()
    expect([keeper.isValid, world.served.length]).toEqual([false, 0])
    world.refuse(undefined)
    await pass(world, () => world.served.length > 0)
    expect(keeper.isValid).toBe(true)
  })

  test('is over with its certificate', async () => {
    const world = cluster()
    const keeper = await world.keep()
    keeper.close()
    await world.timers.advance(LIFE_MS - 1)
    expect(keeper.isValid).toBe(true)
    await world.timers.advance(1)
    expect(keeper.isValid).toBe(false)
  })

  test('does without a configuration that is not installed', async () => {
    const world = cluster()
    world.objects.delete('MutatingWebhookConfiguration')
    await world.keep()
    expect(world.served).toHaveLength(1)
    expect(world.bundleIn('ValidatingWebhookConfiguration')).toContain('BEGIN CERTIFICATE')
  })
})
