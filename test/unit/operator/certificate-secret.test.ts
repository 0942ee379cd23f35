import { afterEach, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { KubeError, type KubeClient, type KubeObject, type ResourceType } from '../../../src/kube/index.ts'
import { type CertificateKeeper, keepCertificate } from '../../../src/operator/webhook/certificate-keeper.ts'
import {
  type Certificate,
  isFor,
  issueCertificates,
  readCertificate,
} from '../../../src/operator/webhook/certificates.ts'
import { createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'

const nowMs = Date.parse('2026-11-22T10:00:00Z')
const SERVICE = 'extauth-operator.extauth-system.svc'
const issue = (names: readonly string[], atMs = nowMs) => issueCertificates({ names, nowMs: atMs })

describe('a certificate and its key', () => {
  test('are read together, and not with the key of another', async () => {
    const [one, other] = [await issue([SERVICE]), await issue([SERVICE])]
    const { cert, key, notAfterMs } = one.serving
    expect(readCertificate(cert, key)).toMatchObject({ notAfterMs })
    expect(readCertificate(cert, other.serving.key)).toBeUndefined()
    expect(readCertificate('nothing', key)).toBeUndefined()
    expect(readCertificate(cert, new Secret('nothing'))).toBeUndefined()
  })

  test('are for the names and addresses that were asked for, and no others', async () => {
    const { serving } = await issue([SERVICE, '127.0.0.1', '::1'])
    expect(isFor(serving, [SERVICE, '127.0.0.1', '::1'])).toBe(true)
    expect([isFor(serving, [SERVICE, 'another.svc']), isFor(serving, ['127.0.0.2'])]).toEqual([false, false])
  })
})

const encoded = (text: string): string => Buffer.from(text).toString('base64')
const dataOf = ({ serving, caBundle }: Awaited<ReturnType<typeof issue>>) => ({
  'tls.crt': encoded(serving.cert),
  'tls.key': encoded(serving.key.reveal()),
  'ca.crt': encoded(caBundle),
})

describe('the Secret that holds it', () => {
  let keeper: CertificateKeeper | undefined
  afterEach(() => keeper?.close())

  /** Looks once at a Secret with this content; what is served then, and the bundle that is stored. */
  async function look(data: Record<string, string> | undefined, names: readonly string[], isLeader = true) {
    let stored = data === undefined ? undefined : secretWith(data)
    const served: Certificate[] = []
    const missing = (): never => {
      throw new KubeError(404, 'NotFound')
    }
    const write = (_type: ResourceType, object: KubeObject) => Promise.resolve((stored = object))
    const client = {
      get: (type: ResourceType) =>
        Promise.resolve().then(() => (type.kind === 'Secret' ? stored : undefined) ?? missing()),
      create: (type: ResourceType, object: KubeObject) =>
        stored === undefined ? write(type, object) : Promise.reject(new KubeError(409, 'AlreadyExists')),
      update: write,
    } as Partial<KubeClient> as KubeClient
    keeper = await keepCertificate({
      client,
      namespace: 'extauth-system',
      secretName: 'certificate',
      configurationName: 'extauth',
      names,
      isLeader: () => isLeader,
      onCertificate: (certificate) => served.push(certificate),
      clock: { now: () => nowMs },
      log: createRecordingLog(),
      metrics: createRecordingMetrics(),
      timers: { now: () => nowMs, after: (_ms, run) => (setImmediate(run), () => {}) },
    })
    keeper.close()
    const written = (stored?.data ?? {}) as Record<string, string>
    const bundle = Buffer.from(written['ca.crt'] ?? '', 'base64').toString()
    return { served: served.at(-1), authorities: bundle.split('BEGIN CERTIFICATE').length - 1 }
  }
  const secretWith = (data: Record<string, string>): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'certificate', namespace: 'extauth-system', resourceVersion: '1' },
    data,
  })

  test.each([
    ['is not there', undefined],
    ['is empty', {}],
    ['holds nonsense', { 'tls.crt': encoded('x'), 'tls.key': encoded('y') }],
  ])('is written when it %s', async (_what, data) => {
    const { served, authorities } = await look(data, [SERVICE])
    expect(served).toBeDefined()
    expect(authorities).toBe(1)
  })

  test('is replaced for other names by the leader, and both CAs are trusted', async () => {
    const before = await issue(['before.svc'])
    const led = await look(dataOf(before), [SERVICE])
    expect([led.served === undefined ? false : isFor(led.served, [SERVICE]), led.authorities]).toEqual([true, 2])
    const followed = await look(dataOf(before), [SERVICE], false)
    expect([followed.served?.cert, followed.authorities]).toEqual([before.serving.cert, 1])
  })

  test.each([true, false])('is replaced if it is not yet valid, leader or not: %s', async (isLeader) => {
    const before = await issue([SERVICE], nowMs + 86_400_000)
    const { served } = await look(dataOf(before), [SERVICE], isLeader)
    expect(served?.notBeforeMs).toBeLessThanOrEqual(nowMs)
    expect([keeper?.isValid, served?.cert === before.serving.cert]).toEqual([true, false])
  })

  test('stays when it is as it should be', async () => {
    const before = await issue([SERVICE, 'another.svc'])
    expect((await look(dataOf(before), [SERVICE])).served?.cert).toBe(before.serving.cert)
  })
})
